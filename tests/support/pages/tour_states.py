"""Pages of the tour that show something only after it was done, and what does it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from tests.support.pages.pictures import SCHEMA

if TYPE_CHECKING:
    from playwright.sync_api import Page

    from accounts.models import Organization, User

FIRST = (
    *("usage", "usage?surface=speech", "requests", "requests?surface=speech", "requests/refused"),
    *("keys", "models", "voices", "organization", "playground"),
)
"""Pages of an organization that has done nothing yet."""


@dataclass
class Seeded:
    """What the pages are about."""

    address: str
    organization: Organization
    customer: Organization
    member: User
    names: dict[str, str]
    """What stands for the names in the paths of pages."""


def members(seeded: Seeded) -> Iterator[tuple[str, Callable[[Page], object]]]:
    """The names of pages that show something only after it was done, and what does it."""
    console = f"{seeded.address}/console/{seeded.organization.slug}"

    def answered(page: Page) -> None:
        page.goto(f"{console}/playground?model=acme/demo-8b")
        page.fill("#message", "think about bees. Use **bold** words.")
        page.keyboard.press("Control+Enter")
        page.locator(".receipt .rounded").wait_for()
        page.click("text=JSON schema of the answer")
        page.fill("#schema", SCHEMA)
        page.locator("#schema-problem:has-text('minimum')").wait_for()

    def compared(page: Page) -> None:
        page.goto(f"{console}/playground")
        page.click("#compare")
        page.fill("#message", "Why is the sky blue?")
        page.keyboard.press("Control+Enter")
        page.locator(".receipt .rounded").nth(1).wait_for()

    def spoken(page: Page) -> None:
        page.goto(f"{console}/voices")
        page.fill("#text", "The morning train was late again.")
        page.click("#say")
        page.locator("#request").wait_for()

    def secret(page: Page) -> None:
        page.goto(f"{console}/keys/new")
        page.fill("#id_label", "nightly batch")
        page.click("main button.primary")
        page.wait_for_selector("#secret")

    def exact(page: Page) -> None:
        page.goto(f"{console}/usage")
        page.locator("main .rounded").first.click()
        page.locator(".bar, .column, [data-tip]").nth(4).hover()

    yield "console-playground-answered", answered
    yield "console-playground-compared", compared
    yield "console-voices-spoken", spoken
    yield "console-key-secret", secret
    yield "console-usage-exact", exact


def operators(seeded: Seeded) -> Iterator[tuple[str, Callable[[Page], object]]]:
    """Those of the admin."""
    from django.contrib.auth.models import Group

    from inference.models import Backend, ModelEntry

    admin = f"{seeded.address}/admin"

    def searched(text: str) -> Callable[[Page], object]:
        def search(page: Page) -> None:
            page.goto(f"{admin}/")
            page.fill("#svc-find", text)
            page.click(".svc-find [type=submit]")

        return search

    def checked(page: Page) -> None:
        page.goto(f"{admin}/inference/backend/add-server/")
        page.fill("#id_base_url", Backend.objects.get().base_url)
        page.fill("#id_models", "acme/found-by-the-tour")
        page.click("text=Check")
        page.locator("text=Publish selected").wait_for()

    def previewed(page: Page) -> None:
        entry = ModelEntry.objects.get(identifier="acme/demo-mini")
        page.goto(f"{admin}/inference/modelentry/{entry.pk}/change/")
        page.click(".object-tools >> text=New price")
        page.fill("#id_input_per_mtok", "0.25")
        page.fill("#id_output_per_mtok", "1.00000001")
        page.click("text=Preview")

    def tested(page: Page) -> None:
        page.goto(f"{admin}/inference/backend/{Backend.objects.get().pk}/test/")
        page.click("input[value=Test]")
        page.wait_for_selector("[role=status]")

    def asked(button: str, *, confirmed: bool) -> Callable[[Page], object]:
        def act(page: Page) -> None:
            page.goto(f"{admin}/accounts/apikey/{seeded.names['key_id']}/change/")
            page.click(f".object-tools >> text={button}")
            if confirmed:
                page.click(".submit-row [type=submit]")

        return act

    def linked(page: Page) -> None:
        page.goto(f"{admin}/accounts/user/{seeded.member.pk}/password-link/")
        page.click("text=Make the link")

    yield "admin-key-revoke", asked("Revoke", confirmed=False)
    yield "admin-key-rotate", asked("Rotate", confirmed=False)
    yield "admin-key-rotated", asked("Rotate", confirmed=True)
    yield "admin-user-link", linked
    yield "admin-user-password", opened(f"{admin}/accounts/user/{seeded.member.pk}/password/")
    yield "admin-password-change", opened(f"{admin}/password_change/")
    yield "admin-group-delete", opened(f"{admin}/auth/group/{Group.objects.all()[0].pk}/delete/")
    yield "admin-app", opened(f"{admin}/inference/")
    yield "admin-search-customer", searched("northwind")
    yield "admin-search-request", searched(seeded.names["refused_id"])
    yield "admin-search-nothing", searched("nobody")
    yield "admin-add-server-checked", checked
    yield "admin-price-preview", previewed
    yield "admin-backend-tested", tested


def opened(address: str) -> Callable[[Page], object]:
    return lambda page: page.goto(address)


def without_session(seeded: Seeded) -> Iterator[tuple[str, Callable[[Page], object]]]:
    """Pages before the login, and those of a member of a customer."""
    from tests.browser.conftest import Person, log_in
    from tests.browser.test_accessibility import BEFORE_THE_LOGIN

    for each in BEFORE_THE_LOGIN:
        address = f"{seeded.address}/console/{each}"
        yield f"login-{each}", opened(address)
    yield "login-admin", opened(f"{seeded.address}/admin/login/")

    def wrong(page: Page) -> None:
        page.goto(f"{seeded.address}/console/")
        page.fill("#id_username", seeded.member.email)
        page.fill("#id_password", "wrong")
        page.click("button.primary")

    yield "login-wrong", wrong

    def member(page: Page) -> None:
        log_in(page, seeded.address, Person(seeded.member.email, "correct horse battery"))

    yield "member-home", member
    for each in ("organization", "requests/refused", "requests?outcome=failed", "keys"):
        address = f"{seeded.address}/console/{seeded.customer.slug}/{each}"
        yield f"member-{each}", opened(address)

    from accounts.models import Membership, Organization, Role, User

    organization = Organization.objects.create(name="First Day")
    user = User.objects.create_user("new@first-day.example", "correct horse battery")
    Membership.objects.create(user=user, organization=organization, role=Role.OWNER)

    def first(page: Page) -> None:
        page.context.clear_cookies()
        log_in(page, seeded.address, Person(user.email, "correct horse battery"))

    yield "first-home", first
    for each in FIRST:
        address = f"{seeded.address}/console/{organization.slug}/{each}"
        yield f"first-{each}", opened(address)


def visiting(seeded: Seeded) -> Iterator[tuple[str, Callable[[Page], object]]]:
    """The console of a customer as an operator reads it; it ends the operator's own."""

    def visited(page: Page) -> None:
        page.goto(f"{seeded.address}/admin/customer/{seeded.customer.pk}/")
        page.click("text=Read its console")

    yield "visit-home", visited
    yield "visit-keys", opened(f"{seeded.address}/console/{seeded.customer.slug}/keys")
