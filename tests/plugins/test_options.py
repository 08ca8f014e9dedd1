"""Options from three places, and errors that name what is wrong and what would be right."""

from __future__ import annotations

import traceback

import pytest

from statestore.errors import PluginError
from statestore.plugins import open_store

TOKEN = "SWORDFISH"


def failure(url: str, **options: object) -> PluginError:
    with pytest.raises(PluginError) as caught:
        open_store(url, **options)
    return caught.value


def all_text(error: PluginError) -> str:
    """Return whatever a program or a person could see of an error."""
    cause = error.__cause__
    seen = "".join(traceback.format_exception(error)) + repr(error) + repr(error.facts)
    return seen + (repr(cause) + repr(getattr(cause, "errors", list)()) + repr(cause.__context__) if cause else "")


def test_keywords_win_over_the_url_and_the_url_over_the_environment(backend, monkeypatch):
    opened = backend("shelf", fields="height: int = 0")
    for name in ("DEPTH", "SIDE", "HEIGHT"):
        monkeypatch.setenv(f"STATESTORE_SHELF_{name}", "right" if name == "SIDE" else "7")
    open_store("shelf://?depth=8&height=8", height=9)
    assert opened[0][1].model_dump() == {"side": "right", "depth": 8, "height": 9}


def test_without_options_the_defaults_hold(backend):
    opened = backend("shelf")
    open_store("shelf://")
    assert opened[0][1].model_dump() == {"side": "left", "depth": 1}


def test_an_unknown_option_names_itself_and_the_right_ones_wherever_it_comes_from(backend, monkeypatch):
    backend("shelf")
    assert failure("shelf://?dept=3").facts == {"backend": "shelf", "option": "dept", "source": "URL"}
    assert failure("shelf://", dept=3).facts["source"] == "keyword"
    assert "it has side, depth" in str(failure("shelf://", dept=3))
    monkeypatch.setenv("STATESTORE_SHELF_DEPT", "3")
    error = failure("shelf://")
    assert error.facts["option"] == "dept"
    assert error.facts["source"] == "STATESTORE_SHELF_DEPT"


def test_a_backend_without_options_says_so():
    assert "it has none" in str(failure("memory://", side="left"))


@pytest.mark.parametrize("source", ["URL", "keyword", "STATESTORE_SHELF_SIDE"])
def test_a_wrong_value_is_shown_with_its_source_and_with_what_is_allowed(backend, monkeypatch, source):
    backend("shelf")
    if source.startswith("STATE"):
        monkeypatch.setenv(source, "middle")
    options = {"side": "middle"} if source == "keyword" else {}
    error = failure("shelf://" + ("?side=middle" if source == "URL" else ""), **options)
    assert error.facts == {"backend": "shelf", "option": "side", "given": "middle", "source": source}
    assert "'left' or 'right'" in str(error)
    assert type(error.__cause__).__name__ == "ValidationError"


def test_every_wrong_option_is_named(backend):
    backend("shelf")
    error = failure("shelf://?side=middle&depth=none")
    assert (error.facts["option"], error.facts["others"]) == ("side", "depth")


def test_an_option_that_is_needed_says_how_to_give_it(backend):
    backend("my-shelf", fields="bucket: str; token: SecretStr")
    error = failure("my-shelf://?side=right")
    assert (error.facts["option"], error.facts["others"]) == ("bucket", "token")
    assert error.facts["variable"] == "STATESTORE_MY_SHELF_BUCKET"
    assert "bucket" in failure("my-shelf://", token=TOKEN).facts["option"]
    assert TOKEN not in all_text(failure("my-shelf://", token=TOKEN))


def test_a_part_that_is_missing_inside_of_an_option_is_a_wrong_value(backend):
    backend("shelf", fields="pair: Optional[Pair] = None")
    error = failure("shelf://", pair={"second": 2})
    assert error.facts == {"backend": "shelf", "option": "pair", "given": "{'second': 2}", "source": "keyword"}
    assert "needs an option" not in str(error)


def test_an_option_twice_in_a_url_is_refused(backend):
    backend("shelf")
    assert failure("shelf://?side=left&side=left").facts["option"] == "side"
    assert failure("shelf://?side=left&s%69de=left").facts["option"] == "side"


@pytest.mark.parametrize("query", ["side", "=left", "side=left&", "&", f"{TOKEN}"])
def test_a_query_that_is_not_name_and_value_is_refused(backend, query):
    backend("shelf")
    error = failure(f"shelf://?{query}")
    assert "name=value" in str(error)
    assert TOKEN not in all_text(error)


def test_a_query_is_percent_decoded_and_a_plus_is_a_plus(backend):
    opened = backend("shelf", fields="label: str = ''")
    open_store("shelf://?label=a%20b%26c%3D+%E2%82%AC%FF=d")
    assert opened[0][1].label == "a b&c=+€\udcff=d"


def test_an_empty_variable_counts_as_not_set(backend, monkeypatch):
    opened = backend("shelf")
    monkeypatch.setenv("STATESTORE_SHELF_SIDE", "")
    monkeypatch.setenv("STATESTORE_SHELF_NOSUCH", "")
    open_store("shelf://")
    assert opened[0][1].side == "left"


def test_a_variable_belongs_to_the_backend_with_the_longest_name(backend, monkeypatch):
    short, long = backend("shelf"), backend("shelf-oak")
    monkeypatch.setenv("STATESTORE_SHELF_OAK_DEPTH", "5")
    open_store("shelf://")
    open_store("shelf-oak://")
    assert (short[0][1].depth, long[0][1].depth) == (1, 5)


def test_a_model_may_take_more_from_callers_but_never_from_the_environment(backend, monkeypatch):
    opened = backend("shelf", fields="model_config = ConfigDict(extra='allow')")
    open_store("shelf://?color=red", size=3)
    assert opened[0][1].model_extra == {"color": "red", "size": 3}
    monkeypatch.setenv("STATESTORE_SHELF_COLOR", "red")
    assert failure("shelf://").facts["source"] == "STATESTORE_SHELF_COLOR"


SECRET_FIELDS = [
    "token: SecretStr = Field(default=SecretStr(''), max_length=3)",
    "token: Optional[SecretStr] = Field(default=None, max_length=3)",
    "token: list[SecretStr] = Field(default_factory=list, max_length=0)",
    "token: Inner = Inner()",
    "token: Optional[dict[str, Inner]] = None",
    (
        "token: SecretStr = SecretStr('')\n"
        "    @field_validator('token')\n"
        "    @classmethod\n"
        "    def check(cls, value): raise ValueError('not ' + value.get_secret_value())"
    ),
    (
        "token: SecretStr = SecretStr('')\n"
        "    @model_validator(mode='after')\n"
        "    def check(self): raise ValueError('not ' + self.token.get_secret_value())"
    ),
    (
        "token: SecretStr = SecretStr('')\n"
        "    @model_validator(mode='before')\n"
        "    @classmethod\n"
        "    def check(cls, values): raise ValueError('not ' + str(values))"
    ),
]


@pytest.mark.parametrize("fields", SECRET_FIELDS)
@pytest.mark.parametrize("side", ["left", "middle"])
def test_a_secret_is_in_no_error(backend, monkeypatch, fields, side):
    backend("shelf", fields=fields)
    given = [TOKEN, [TOKEN], {"token": TOKEN}, {"x": {"token": TOKEN}}, {TOKEN: 3}, TOKEN.encode(), [[TOKEN]]]
    errors = [failure(f"shelf://?side={side}&token={TOKEN}")]
    errors += [failure("shelf://", side=side, token=value) for value in given if not accepted(side, value)]
    monkeypatch.setenv("STATESTORE_SHELF_TOKEN", TOKEN)
    errors.append(failure(f"shelf://?side={side}"))
    assert not [error for error in errors if TOKEN in all_text(error)]
    assert all(error.__cause__ is not None for error in errors)


def accepted(side: str, token: object) -> bool:
    """Say whether no error is to be expected, so that there is none to look at."""
    try:
        open_store("shelf://", side=side, token=token)
    except PluginError:
        return False
    return True


def test_a_value_that_is_no_secret_is_shown_beside_one_that_is(backend):
    backend("shelf", fields="token: SecretStr = SecretStr('')")
    error = failure("shelf://", side="middle", token=TOKEN)
    assert error.facts["given"] == "middle"
    assert TOKEN not in all_text(error)


def test_a_check_of_all_options_together_says_what_it_says(backend):
    backend(
        "shelf",
        fields="@model_validator(mode='after')\n    def check(self): raise ValueError('side or\\ndepth, not both')",
    )
    error = failure("shelf://?side=right")
    assert r"side or\ndepth, not both" in str(error)
    assert "\n" not in str(error)
    assert "option" not in error.facts


def test_a_validator_that_breaks_is_an_error_of_the_backend(backend):
    backend("shelf", fields="@model_validator(mode='after')\n    def check(self): raise KeyError('x')")
    assert isinstance(failure("shelf://").__cause__, KeyError)


def test_a_long_value_is_shortened_and_control_characters_make_no_line(backend):
    backend("shelf")
    error = failure("shelf://", side="x\n" * 500)
    assert len(error.facts["given"]) == 80
    assert "\n" not in str(error)
