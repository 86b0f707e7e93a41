"""nbgrader's configuration for this course: solutions/ is the source, labs/ is what students get."""

from nbgrader.converters import Autograde, GenerateAssignment

from xinfer_lab.course.clear_answers import ClearAnswers
from xinfer_lab.course.feedback.exporter import FeedbackExporter, FeedbackPage, FeedbackPoints
from xinfer_lab.course.formgrader import protect
from xinfer_lab.course.nbgrader_entry import CollectPlain, guard
from xinfer_lab.course.preprocessors import SubmissionExporter, TransplantAnswers, VerifiedMarks
from xinfer_lab.course.renamed import forgive_timestamps, take_renamed

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

# What is taken of a submission: no links, no files beside the notebook, see docs/marking.md.
guard()
c.ExchangeFactory.collect = CollectPlain

# Formgrader shows what students wrote: sanitised, and on pages that run no script of theirs.
protect()
c.HTMLExporter.filters = {"markdown2html": "xinfer_lab.course.formgrader.markdown2html"}

# Marking: a student's code runs apart from the checks, see docs/marking.md. VerifiedMarks.sandbox may be "auto"
# (bubblewrap where it works, and a warning where it does not), "bubblewrap" (or nothing is marked), or "none".
c.Autograde.exporter_class = SubmissionExporter
c.Autograde.pre_convert_hook = take_renamed
forgive_timestamps()
c.Autograde.sanitize_preprocessors = [TransplantAnswers, *Autograde.sanitize_preprocessors.default_args[0]]
c.Autograde.autograde_preprocessors = [
    VerifiedMarks if step.__name__ == "Execute" else step for step in Autograde.autograde_preprocessors.default_args[0]
]
c.VerifiedMarks.sandbox = "auto"

# What a student gets back: what was expected, what happened and why, without hidden tests and without anything from
# another host.
c.GenerateFeedback.exporter_class = FeedbackExporter
c.GenerateFeedback.preprocessors = [FeedbackPoints, FeedbackPage]

# For `nbgrader validate`, which runs a notebook. A busy machine must not cost points.
c.Execute.timeout = 300
c.Execute.iopub_timeout = 60
c.Execute.startup_timeout = 180
