"""nbgrader's configuration for this course: solutions/ is the source, labs/ is what students get."""

from nbgrader.converters import GenerateAssignment

from xinfer_lab.course.clear_answers import ClearAnswers

c = get_config()  # noqa: F821

c.CourseDirectory.course_id = "xinfer-lab"
c.CourseDirectory.source_directory = "solutions"
c.CourseDirectory.release_directory = "labs"
c.CourseDirectory.ignore = [".ipynb_checkpoints", "*.pyc", "__pycache__", ".pytest_cache"]

# A gap says how many lines it takes: the stub stands next to the answer in solutions/.
c.GenerateAssignment.preprocessors = [
    ClearAnswers if step.__name__ == "ClearSolutions" else step
    for step in GenerateAssignment.preprocessors.default_args[0]
]
c.ClearSolutions.text_stub = "*Write your answer here, in place of this line.*"

# A busy machine must not cost points: a lab's cells take seconds, and a check stops an answer that never ends by
# itself.
c.Execute.timeout = 300
c.Execute.iopub_timeout = 60
c.Execute.startup_timeout = 180
