"""An operator cannot grant rights that he does not hold, nor find out secrets by filters."""

from __future__ import annotations

import importlib
from collections.abc import Iterator
from typing import Any

import pytest
from django.apps import apps
from django.contrib import admin
from django.contrib.auth.models import Group, Permission
from django.db.models import Model
from django.test import Client, RequestFactory

from accounts.keys import keys
from accounts.models import ApiKey, AuditEntry, Membership, Organization, Role, Scope, User
from tests.support.pages.admin_forms import filled_in, logged_in, operator
from tests.support.pages.console import member

pytestmark = pytest.mark.django_db

USERS = "/admin/accounts/user/"
ORGANIZATIONS = "/admin/accounts/organization/"
KEYS = "/admin/accounts/apikey/"
GROUPS = "/admin/auth/group/"
NEW = {"password1": "another long one", "password2": "another long one", "usable_password": "true"}
MANAGES_USERS = ("accounts.view_user", "accounts.add_user", "accounts.change_user")

SECRETS = {
    "accounts.user": {"password"},
    "accounts.apikey": {"digest", "pepper"},
    "inference.diagnosticcapture": {"content"},
    "speech.voiceclone": {"profile"},
    "speech.cloneaudio": {"sealed"},
}


def permission(name: str) -> Permission:
    app, _, codename = name.partition(".")
    return Permission.objects.get(content_type__app_label=app, codename=codename)


def test_an_operator_cannot_make_superusers_or_grant_permissions_and_groups() -> None:
    me = operator(*MANAGES_USERS)
    other = User.objects.create_user("ann@acme.example", "correct horse battery")
    group = Group.objects.create(name="strong")
    group.permissions.add(permission("inference.change_backend"))
    client = logged_in(me)
    for user in (me, other):
        address = f"{USERS}{user.pk}/change/"
        wanted = {
            **filled_in(client, address),
            "email": f"new-{user.email}",
            "is_superuser": "on",
            "is_staff": "on",
            "groups": [group.pk],
            "user_permissions": [permission("inference.change_backend").pk],
        }
        assert client.post(address, wanted).status_code == 302
        user.refresh_from_db()
        assert user.email.startswith("new-"), "what he may change is changed"
        assert not user.is_superuser
        assert user.is_staff is (user == me)
        assert not user.has_perm("inference.change_backend")
        assert not user.groups.exists()


def test_a_superuser_can_grant_all_of_it() -> None:
    client = logged_in(User.objects.create_superuser("root@acme.example", "correct horse battery"))
    other = User.objects.create_user("ann@acme.example", "correct horse battery")
    address = f"{USERS}{other.pk}/change/"
    wanted = permission("inference.change_backend").pk
    form = {**filled_in(client, address), "is_staff": "on", "user_permissions": [wanted]}
    assert client.post(address, form).status_code == 302
    other = User.objects.get(pk=other.pk)
    assert other.is_staff
    assert other.has_perm("inference.change_backend")


@pytest.mark.parametrize("stronger", ["superuser", "permission", "group", "switched off"])
def test_a_stronger_user_is_not_changed_nor_given_a_password_or_a_link(stronger: str) -> None:
    client = logged_in(operator(*MANAGES_USERS))
    other = User.objects.create_user("strong@acme.example", "correct horse battery")
    if stronger == "superuser":
        other.is_superuser = True
    elif stronger == "group":
        group = Group.objects.create(name="strong")
        group.permissions.add(permission("inference.view_backend"))
        other.groups.add(group)
    else:
        other.user_permissions.add(permission("inference.view_backend"))
        other.is_active = stronger != "switched off"
    other.is_staff = True
    other.save()

    assert client.get(f"{USERS}{other.pk}/change/").status_code == 200, "it may be looked at"
    form = {"email": "taken@acme.example", "is_active": "on"}
    assert client.post(f"{USERS}{other.pk}/change/", form).status_code == 403
    assert client.get(f"{USERS}{other.pk}/password/").status_code == 403
    assert client.post(f"{USERS}{other.pk}/password/", NEW).status_code == 403
    assert client.post(f"{USERS}{other.pk}/delete/", {"post": "yes"}).status_code == 403
    assert client.get(f"{USERS}{other.pk}/password-link/").status_code == 403
    assert client.post(f"{USERS}{other.pk}/password-link/").status_code == 403
    assert not AuditEntry.objects.filter(verb="given a one-time link").exists()
    again = User.objects.get(pk=other.pk)
    assert again.check_password("correct horse battery")
    assert (again.email, again.is_active) == (other.email, other.is_active)


def test_an_equal_operator_is_given_a_password() -> None:
    client = logged_in(operator(*MANAGES_USERS))
    other = operator("accounts.view_user", email="equal@acme.example")
    assert client.post(f"{USERS}{other.pk}/password/", NEW).status_code == 302
    assert User.objects.get(pk=other.pk).check_password("another long one")


def test_a_members_password_and_link_need_the_right_to_add_memberships(
    organization: Organization,
) -> None:
    """Either opens the console of the member's organizations."""
    user = member(organization)
    weak = logged_in(operator(*MANAGES_USERS))
    assert weak.post(f"{USERS}{user.pk}/password/", NEW).status_code == 403
    assert weak.post(f"{USERS}{user.pk}/password-link/").status_code == 403
    assert User.objects.get(pk=user.pk).check_password("correct horse battery")
    strong = logged_in(operator(*MANAGES_USERS, "accounts.add_membership", email="b@a.example"))
    assert strong.post(f"{USERS}{user.pk}/password-link/").status_code == 200
    assert strong.post(f"{USERS}{user.pk}/password/", NEW).status_code == 302
    colleague = operator(*MANAGES_USERS, email="c@a.example")
    Membership.objects.create(user=colleague, organization=organization)
    assert logged_in(colleague).post(f"{USERS}{user.pk}/password/", NEW).status_code == 302


def test_a_members_email_needs_the_right_to_add_memberships(organization: Organization) -> None:
    """A link for a new password is mailed to it, and the password opens the member's console."""
    user = member(organization)
    address = f"{USERS}{user.pk}/change/"
    for me in (
        operator(*MANAGES_USERS),
        operator(*MANAGES_USERS, "accounts.add_membership", email="b@a.example"),
    ):
        client = logged_in(me)
        form = {**filled_in(client, address), "email": f"mail-of-{me.email}", "name": "Ann"}
        assert client.post(address, form).status_code == 302
        user.refresh_from_db()
        assert user.name == "Ann", "what he may change is changed"
        may = me.has_perm("accounts.add_membership")
        assert user.email == (f"mail-of-{me.email}" if may else "ada@northwind.example")


def test_a_member_is_switched_off_with_fewer_rights_than_on(organization: Organization) -> None:
    """A member who is switched on again reads his organizations, as with a new membership."""
    user = member(organization)
    address = f"{USERS}{user.pk}/change/"
    weak = logged_in(operator(*MANAGES_USERS))
    off = filled_in(weak, address)
    off.pop("is_active")
    assert weak.post(address, off).status_code == 302
    user.refresh_from_db()
    assert not user.is_active

    assert weak.post(address, {**off, "is_active": "on"}).status_code == 302
    user.refresh_from_db()
    assert not user.is_active

    strong = operator(*MANAGES_USERS, "accounts.add_membership", email="b@a.example")
    client = logged_in(strong)
    assert (
        client.post(address, {**filled_in(client, address), "is_active": "on"}).status_code == 302
    )
    user.refresh_from_db()
    assert user.is_active


def _memberships(**row: Any) -> dict[str, Any]:
    form = {
        "memberships-TOTAL_FORMS": "1",
        "memberships-INITIAL_FORMS": "1" if "id" in row else "0",
    }
    return form | {f"memberships-0-{name}": str(value) for name, value in row.items()}


def test_memberships_are_added_with_a_right_of_their_own_and_never_moved(
    organization: Organization,
) -> None:
    me = operator(*MANAGES_USERS, "accounts.change_organization", "accounts.change_membership")
    client = logged_in(me)
    row = {"user": me.pk, "organization": organization.pk}
    for address in (f"{USERS}{me.pk}/change/", f"{ORGANIZATIONS}{organization.pk}/change/"):
        client.post(address, {**filled_in(client, address), **_memberships(**row)})
    assert not Membership.objects.exists()

    other = Organization.objects.create(name="Other")
    user = member(other)
    kept = Membership.objects.get()
    address = f"{USERS}{user.pk}/change/"
    moved = _memberships(id=kept.pk, user=user.pk, organization=organization.pk)
    client.post(address, {**filled_in(client, address), **moved})
    address = f"{ORGANIZATIONS}{other.pk}/change/"
    moved = _memberships(id=kept.pk, user=me.pk, organization=other.pk)
    client.post(address, {**filled_in(client, address), **moved})
    kept.refresh_from_db()
    assert (kept.user, kept.organization) == (user, other)

    me.user_permissions.add(permission("accounts.add_membership"))
    address = f"{USERS}{me.pk}/change/"
    answer = client.post(address, {**filled_in(client, address), **_memberships(**row)})
    assert answer.status_code == 302
    assert Membership.objects.filter(**row).exists()


def test_groups_are_for_superusers_to_change() -> None:
    me = operator(*(f"auth.{verb}_group" for verb in ("view", "add", "change", "delete")))
    group = Group.objects.create(name="mine")
    me.groups.add(group)
    client = logged_in(me)
    wanted = {"name": "mine", "permissions": [permission("inference.change_backend").pk]}
    assert client.get(f"{GROUPS}{group.pk}/change/").status_code == 200
    assert client.post(f"{GROUPS}{group.pk}/change/", wanted).status_code == 403
    assert client.post(f"{GROUPS}add/", {**wanted, "name": "new"}).status_code == 403
    client.post(f"{GROUPS}{group.pk}/delete/", {"post": "yes"})
    client.post(GROUPS, {"action": "delete_selected", "_selected_action": group.pk, "post": "yes"})
    assert not Group.objects.get(name="mine").permissions.exists()
    assert not Group.objects.filter(name="new").exists()

    root = logged_in(User.objects.create_superuser("root@acme.example", "correct horse battery"))
    assert root.post(f"{GROUPS}{group.pk}/change/", wanted).status_code == 302
    assert group.permissions.count() == 1


@pytest.mark.parametrize(
    ("held", "made"),
    [
        (("accounts.change_apikey",), 0),
        (("accounts.add_apikey", "accounts.view_apikey"), 0),
        (("accounts.change_apikey", "accounts.add_apikey"), 1),
    ],
)
def test_rotating_a_key_needs_the_rights_to_change_and_to_add(
    organization: Organization, held: tuple[str, ...], made: int
) -> None:
    api_key = keys.mint(organization, Scope.READ).api_key
    client = logged_in(operator(*held))
    form = {"action": "rotate", "_selected_action": [api_key.pk], "confirmed": "1", "overlap": "0"}
    answer = client.post(KEYS, form)
    assert ApiKey.objects.count() == 1 + made
    assert ('class="secret"' in answer.content.decode()) is bool(made)


def _paths(model: type[Model], depth: int = 2) -> Iterator[str]:
    """Every lookup from ``model`` to a secret column, over at most ``depth`` relations."""
    yield from SECRETS.get(model._meta.label_lower, ())
    if depth == 0:
        return
    for field in model._meta.get_fields():
        if field.related_model is None or isinstance(field.related_model, str):
            continue
        name = field.name
        yield from (f"{name}__{path}" for path in _paths(field.related_model, depth - 1))


@pytest.mark.parametrize("model", list(admin.site._registry), ids=lambda model: model.__name__)
def test_no_page_filters_or_searches_by_a_secret(model: type[Model]) -> None:
    page = admin.site._registry[model]
    request = RequestFactory().get("/")
    request.user = User.objects.create_superuser("root@acme.example", "correct horse battery")
    paths = set(_paths(model))
    for path in paths:
        for suffix in ("", "__startswith", "__regex", "__gt"):
            assert not page.lookup_allowed(f"{path}{suffix}", "7", request), path
    shown = {*page.get_list_display(request), *map(str, page.get_list_filter(request))}
    searched = {field.lstrip("^=@") for field in page.get_search_fields(request)}
    assert not paths & (shown | searched | set(page.get_ordering(request) or ()))


@pytest.mark.parametrize(
    "query",
    [
        "digest__startswith=7", "pepper=x", "organization__api_keys__digest__startswith=7",
    ],
)  # fmt: skip
def test_filters_do_not_reveal_a_digest(organization: Organization, query: str) -> None:
    api_key = keys.mint(organization, Scope.READ).api_key
    client = logged_in(operator("accounts.view_apikey", "accounts.view_organization"))
    digest = query.replace("7", api_key.digest[0])
    assert client.get(f"{KEYS}?{digest}").status_code == 400
    assert client.get(f"{ORGANIZATIONS}?api_keys__{digest}").status_code == 400
    assert client.get(f"{KEYS}?_to_field=digest").status_code == 400
    assert client.get(f"{KEYS}?o=digest").status_code in (200, 302), "no such column: not ordered"


def make_groups() -> None:
    migration = importlib.import_module("accounts.migrations.0004_operator_groups")
    migration.make_groups(apps, None)


@pytest.fixture
def ready_made() -> dict[str, Group]:
    Group.objects.all().delete()
    make_groups()
    return {group.name: group for group in Group.objects.all()}


def names(group: Group) -> set[str]:
    rows = group.permissions.values_list("content_type__app_label", "codename")
    return {f"{app}.{codename}" for app, codename in rows}


def test_there_are_ready_made_groups_of_permissions_that_exist(
    ready_made: dict[str, Group],
) -> None:
    assert set(ready_made) == {"viewer", "catalog editor", "key manager", "support"}
    for group in ready_made.values():
        for row in group.permissions.select_related("content_type"):
            model = row.content_type.model_class()
            assert model is not None, row
            verb = row.codename.partition("_")[0]
            assert row.name == f"Can {verb} {model._meta.verbose_name_raw}"
        held = names(group)
        assert not held & {"accounts.add_membership", "accounts.change_user", "auth.change_group"}
        assert "inference.view_diagnosticcapture" not in held
    assert all("view_" in each for each in names(ready_made["viewer"]))
    assert {"accounts.add_apikey", "accounts.change_apikey"} <= names(ready_made["key manager"])


@pytest.mark.parametrize(
    ("name", "opened", "closed"),
    [
        ("viewer", ["/admin/inference/backend/", KEYS, USERS, "/admin/usage/usagerow/"],
         ["/admin/inference/diagnosticcapture/", f"{KEYS}add/", "/admin/inference/backend/add/"]),
        ("catalog editor", ["/admin/inference/backend/add/", "/admin/inference/modelentry/add/",
         "/admin/speech/voice/add/", "/admin/speech/speechbackend/add/"],
         [KEYS, USERS, "/admin/usage/usagerow/", "/admin/accounts/auditentry/"]),
        ("key manager", [f"{KEYS}add/", ORGANIZATIONS],
         [USERS, "/admin/inference/backend/", f"{ORGANIZATIONS}add/"]),
        ("support", [KEYS, USERS, ORGANIZATIONS, "/admin/usage/usagerow/", "/admin/speech/voiceclone/"],
         [f"{KEYS}add/", f"{USERS}add/", "/admin/inference/backend/"]),
    ],
)  # fmt: skip
def test_a_ready_made_group_opens_its_pages_and_no_others(
    ready_made: dict[str, Group], name: str, opened: list[str], closed: list[str]
) -> None:
    user = operator()
    user.groups.add(ready_made[name])
    client: Client = logged_in(user)
    assert {page: client.get(page).status_code for page in opened} == dict.fromkeys(opened, 200)
    assert {page: client.get(page).status_code for page in closed} == dict.fromkeys(closed, 403)


def test_only_a_superuser_makes_owners_and_sets_their_passwords() -> None:
    """An owner reads the content of failed requests, which no operator can."""
    organization = Organization.objects.create(name="Acme")
    owner = User.objects.create_user("owner@acme.example", "correct horse battery")
    Membership.objects.create(user=owner, organization=organization, role=Role.OWNER)
    strong = logged_in(operator(*MANAGES_USERS, "accounts.add_membership"))
    root = logged_in(User.objects.create_superuser("root@acme.example", "correct horse battery"))

    assert strong.post(f"{USERS}{owner.pk}/password/", NEW).status_code == 403
    assert strong.post(f"{USERS}{owner.pk}/password-link/").status_code == 403
    assert root.post(f"{USERS}{owner.pk}/password/", NEW).status_code == 302
    for client, role in ((strong, Role.MEMBER), (root, Role.OWNER)):
        other = User.objects.create_user(f"new-{role}@acme.example", "correct horse battery")
        address = f"{USERS}{other.pk}/change/"
        form = {
            **filled_in(client, address),
            "memberships-TOTAL_FORMS": "1",
            "memberships-0-organization": str(organization.pk),
            "memberships-0-role": "owner",
        }
        assert client.post(address, form).status_code == 302
        assert other.memberships.get().role == role
