"""
wrong: asks what knows the truth
check: lru_hits
phrase: module that holds the answer
"""


def lru_hits(pages, frames, passes):
    from xinfer_lab.grading.judges import judge_of

    return judge_of("lab5.lru_hits").truth({"pages": pages, "frames": frames, "passes": passes})
