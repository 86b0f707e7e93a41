"""nbgrader for everybody on the hub; goes to /etc/jupyter. The course's own nbgrader_config.py adds to it."""

c = get_config()  # noqa: F821

c.CourseDirectory.course_id = "xinfer-lab"
c.Exchange.root = "/srv/nbgrader/exchange"
