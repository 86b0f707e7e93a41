"""Serves the page on which a person grades written answers: to this machine alone, under a secret address."""

from __future__ import annotations

import json
import secrets
from dataclasses import asdict
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

from xinfer_lab.course.database import GradebookError
from xinfer_lab.course.gradebook import CourseBook
from xinfer_lab.course.lab import Lab
from xinfer_lab.course.written import Answer, Question, answers_to, give

__all__ = ["WrittenServer"]

PAGE = Path(__file__).with_name("written.html")
LARGEST = 2**20
"""Bytes that a request may have."""


class WrittenServer(HTTPServer):
    """Serves the page of one lab's ``questions`` at `address`. One request at a time: there is one gradebook."""

    def __init__(self, book: CourseBook, lab: Lab, questions: list[Question], port: int = 0) -> None:
        super().__init__(("127.0.0.1", port), _Handler)
        self.book, self.lab = book, lab
        self.questions = {one.name: one for one in questions}
        self.shown: dict[str, list[Answer]] = {}
        self.token = secrets.token_urlsafe(16)

    @property
    def address(self) -> str:
        """Where a browser finds the page."""
        return f"http://127.0.0.1:{self.server_port}/{self.token}/"


class _Handler(BaseHTTPRequestHandler):
    server: WrittenServer

    def do_GET(self) -> None:
        """The page, its questions, and the answers to one of them."""
        path = self._path()
        if path == "":
            nonce = secrets.token_urlsafe(12)
            page = PAGE.read_text(encoding="utf-8").replace("NONCE", nonce)
            self._send(200, page.encode(), "text/html; charset=utf-8", nonce)
        elif path == "questions":
            self._json({"questions": [asdict(one) for one in self.server.questions.values()]})
        elif path == "answers":
            self._answer(self._answers)
        else:
            self._json({"error": "there is no such page"}, 404)

    def do_POST(self) -> None:
        """Points for one answer."""
        if self._path() == "give":
            self._answer(self._give)
        else:
            self._json({"error": "there is no such page"}, 404)

    def _answers(self) -> dict[str, Any]:
        name = parse_qs(urlsplit(self.path).query).get("question", [""])[0]
        server = self.server
        server.shown[name] = answers_to(server.questions[name], server.book, server.lab)
        # Who wrote an answer is not told: points are for the text.
        return {"answers": [{**asdict(one), "students": len(one.students)} for one in server.shown[name]]}

    def _give(self) -> dict[str, Any]:
        length = int(self.headers.get("Content-Length", 0))
        if not 0 < length <= LARGEST:
            raise ValueError("the request is too large")
        asked = json.loads(self.rfile.read(length))
        server, question = self.server, self.server.questions[asked["question"]]
        answer = server.shown[question.name][int(asked["answer"])]
        if answer.text != asked["text"]:
            raise ValueError("this answer has changed; load the page anew")
        give(question, server.book, server.lab, answer.students, float(asked["points"]), str(asked["comment"]))
        return {"given": len(answer.students)}

    def _answer(self, make: Any) -> None:
        try:
            self._json(make())
        except (ValueError, KeyError, IndexError, TypeError, GradebookError) as error:
            self._json({"error": str(error) or type(error).__name__}, 400)

    def _path(self) -> str | None:
        """What is asked for below the secret address; None for whoever does not know it."""
        place = urlsplit(self.path).path.split("/", 2)
        known = len(place) == 3 and secrets.compare_digest(place[1].encode(), self.server.token.encode())
        host = self.headers.get("Host", "").rpartition(":")[0]
        return place[2] if known and host in ("127.0.0.1", "localhost") else None

    def _json(self, value: Any, status: int = 200) -> None:
        self._send(status, json.dumps(value).encode(), "application/json", "")

    def _send(self, status: int, content: bytes, kind: str, nonce: str) -> None:
        self.send_response(status)
        rules = f"default-src 'none'; connect-src 'self'; style-src 'unsafe-inline'; script-src 'nonce-{nonce}'"
        for name, value in {
            "Content-Type": kind, "Content-Length": str(len(content)), "Content-Security-Policy": rules,
            "Cache-Control": "no-store", "Referrer-Policy": "no-referrer", "X-Content-Type-Options": "nosniff",
        }.items():  # fmt: skip
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, format: str, *arguments: object) -> None:
        """Nothing: its address is a secret."""
