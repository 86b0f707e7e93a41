"""A hub whose users are those of the system; goes to /etc/jupyterhub."""

c = get_config()  # noqa: F821

c.JupyterHub.bind_url = "http://127.0.0.1:8000"  # behind a server that speaks TLS
c.JupyterHub.authenticator_class = "pam"
c.Authenticator.admin_users = {"instructor"}
c.Authenticator.allow_all = True  # everybody with an account on this machine
c.Spawner.default_url = "/lab"
# A lab's own limits: a kernel with torch takes about one GiB.
c.Spawner.mem_limit = "4G"
c.Spawner.environment = {"OMP_NUM_THREADS": "1", "CUDA_VISIBLE_DEVICES": ""}
