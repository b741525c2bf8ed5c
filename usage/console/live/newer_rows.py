"""The part of a list of requests that is newer than what a page shows already."""

from __future__ import annotations

from django.http import Http404, HttpRequest, HttpResponse

from svc_project.lib.errors import ApiError
from usage.console.live.watch import complete_to
from usage.console.query_string import Place
from usage.console.requests_page import RequestsPage
from usage.queries import cursors
from usage.queries.periods import parse_query


class NewerRows(RequestsPage):
    """``GET /console/requests/newer``: the same filters, rows and templates as the page itself.

    ``after``: the cursor that the page or the last answer gave. Rows between it and the end of a
    running commit are sent again, and the script leaves out those that are there. When more are new
    than a page holds, or without ``after``, the answer replaces the whole list.

    ``organization``: the one that the page shows; 404 when the session shows another by now.
    """

    def get(self, request: HttpRequest) -> HttpResponse:
        if request.GET.get("organization") != str(self.organization.pk):
            raise Http404
        self.place = Place.of(request.GET)
        given = request.GET.get("after")
        try:
            after = cursors.decode(given) if given else None
            query = parse_query(self.place.parameters)
            # Before the rows are read, so that a row committed meanwhile is sent again.
            complete = complete_to(after.occurred_at if after else None)
            page = self.selected(query).page(None, after)
        except ApiError as problem:
            return HttpResponse(problem.message, status=problem.status, content_type="text/plain")
        is_whole = after is None or page.older is not None
        return self.page(
            "console/_newer_requests.html",
            **self.listed(page),
            is_speech=self.is_speech,
            complete=complete,
            is_whole=is_whole,
        )
