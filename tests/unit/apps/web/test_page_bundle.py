"""The page's modules as one: what it does is what they do one by one."""

import json
import re
import shutil
import subprocess
from pathlib import Path
from urllib.parse import quote

import pytest

from spectrod.apps.web.page_bundle import bundle, short_style
from spectrod.apps.web.page_files import PAGE_FOLDER, read_page

MODULES = {
    path.relative_to(PAGE_FOLDER).as_posix(): path.read_text("utf-8")
    for path in sorted(PAGE_FOLDER.rglob("*.js"))
}
# Runs each text as a module and says which names the last constant of it has, and of which types.
NAMES = """
import { readFileSync } from "node:fs";
const found = {};
for (const [path, text] of Object.entries(JSON.parse(readFileSync(0, "utf8")))) {
  const made = await import("data:text/javascript," + encodeURIComponent(text));
  const all = Object.entries(made.all ?? made);
  found[path] = all.map(([name, value]) => [name, typeof value]).sort();
}
console.log(JSON.stringify(found));
"""


def names_of(texts):
    """Return the names and types that modules export, as Node finds them."""
    node = shutil.which("node")
    assert node is not None, "the page's tests need node"
    command = [node, "--input-type=module", "--eval", NAMES]
    done = subprocess.run(
        command, input=json.dumps(texts), capture_output=True, text=True, timeout=100, check=False
    )
    assert (done.returncode, done.stderr) == (0, "")
    return json.loads(done.stdout)


def ran(modules, first="main.js"):
    """Return what modules that are joined write to the list ``said``."""
    text = f"const said = [];\n{bundle(modules, first).text}export const all = {{ said }};\n"
    text = text.replace("{ said }", "Object.fromEntries(said.map((one) => [one, one]))")
    return [name for name, _ in names_of({"all": text})["all"]]


def test_modules_run_once_each_and_see_what_they_import():
    """Also under another name, from a folder above, and from several lines."""
    modules = {
        "main.js": 'import {\n  Two,\n  twice as double,\n} from "./a/two.js";\n'
        'import { ONE } from "./one.js";\nsaid.push(`${double(ONE)} ${typeof Two}`);\n',
        "a/two.js": 'import { ONE } from "../one.js";\nexport class Two {}\n'
        "export function twice(n) {\n  return 2 * n * ONE;\n}\n",
        "one.js": "export const ONE = 1;\nsaid.push(`once`);\n",
    }
    assert ran(modules) == ["2 function", "once"]


def test_comments_are_left_out_and_texts_are_not():
    """Lines of a text that begin as comments do belong to it."""
    text = "/**\n * Says `this`.\n */\n// And `that.\nsaid.push(`a\n// b\n\n/** c */\n`); // d\n"
    text += """\nsaid.push("e; // f", 'g, // h'); // i\n"""
    assert ran({"main.js": text}) == ["a\n// b\n\n/** c */\n", "e; // f", "g, // h"]
    sent = bundle({"main.js": text}, "main.js").text
    assert re.search(r"Says|And|// d|// i|\);\n\n", sent) is None


def test_a_style_is_sent_without_comments():
    """Its texts and rules stay, line by line."""
    style = '/* a\n b */\n.c { content: "/* d */"; }\n\n@media {\n  .e { top: 0; /* f */ }\n}\n'
    assert short_style(style) == '.c { content: "/* d */"; }\n@media {\n.e { top: 0;  }\n}\n'


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ('import { a } from "./away.js";\n', "away.js: no such module, imported by main.js"),
        ('import { a } from "./main.js";\n', "main.js: imports itself by way of main.js"),
        ('import a from "./one.js";\n', "main.js: 'import a from \"./one.js\";': no form"),
        ('import "./one.js";\n', "main.js: 'import \"./one.js\";': no form"),
        ("export default 1;\n", "main.js: 'export default 1;': no form"),
        ("export let a = 1;\n", "main.js: 'export let a = 1;': no form"),
        ('const a = await import("./one.js");\n', "main.js: 'import(\"./one.js\");': no form"),
        ("const a = import.meta.url;\n", "main.js: 'import.meta.url;': no form"),
    ],
)
def test_what_cannot_be_joined_is_named(text, why):
    """A form that would mean something else when joined is refused, with its module."""
    with pytest.raises(ValueError, match=re.escape(why)):
        bundle({"main.js": text, "one.js": ""}, "main.js")


def test_each_module_of_the_page_exports_the_same_when_joined():
    """All names and their types; the page's main module, which needs a document, has none."""
    others = [path for path in MODULES if path != "main.js"]
    constant = re.compile(r"^const (\$\d+) = ", re.MULTILINE)
    joined = {}
    for path in others:
        text = bundle(MODULES, path).text
        joined[path] = f"{text}export const all = {constant.findall(text)[-1]};\n"
    address = (PAGE_FOLDER.as_uri() + "/").__add__
    apart = {path: f'export * from "{address(path)}";\n' for path in others}
    assert names_of(joined) == names_of(apart)
    assert re.search(r"^export\b", bundle(MODULES, "main.js").text, re.MULTILINE) is None


def test_what_is_loaded_later_is_apart_and_sees_the_same_modules():
    """It has what the first one has not, gets the rest from it, and is made once."""
    modules = {
        "main.js": 'import { seen } from "./a/seen.js";\nimport { ONE } from "./one.js";\n'
        "export const shown = { seen, ONE };\n"
        'export const load = () => import("./a/late.js").then(({ add }) => add(ONE));\n',
        "a/seen.js": "export const seen = [];\n",
        "a/late.js": 'import {\n  seen as all,\n} from "./seen.js";\n'
        'import { TWO } from "../two.js";\nall.push(`late`);\n'
        "export const add = (n) => all.push(n + TWO);\n",
        "one.js": "export const ONE = 1;\n",
        "two.js": "export const TWO = 2;\n",
    }

    def address(path, text):
        assert path == "a/late.js"
        assert re.findall(r"^// (\S+\.js)$", text, re.MULTILINE) == ["two.js", "a/late.js"]
        return "late"

    made = bundle(modules, "main.js", address)
    assert list(made.later) == ["late"]
    assert "two.js" not in made.text
    late = "data:text/javascript," + quote(made.later["late"])
    text = made.text.replace('import("./late")', f'import("{late}")')
    constant = re.findall(r"^const (\$\d+) = ", made.text, re.MULTILINE)[-1]
    text += f"for (const _ of [1, 2]) await {constant}.load();\n"
    text += f"export const all = Object.fromEntries({constant}.shown.seen.entries());\n"
    text = text.replace(".entries())", ".map((one) => [one, one]))")
    assert [name for name, _ in names_of({"all": text})["all"]] == ["3", "late"]


@pytest.mark.parametrize(
    ("late", "why"),
    [
        ('import("./one.js");\n', "late.js: loads one.js later: no form that can be joined"),
        ('import { a } from "./away.js";\n', "away.js: no such module, imported by late.js"),
        (None, "late.js: no such module, imported by the page"),
    ],
)
def test_what_cannot_be_loaded_later_is_named(late, why):
    """So is what one module imports and another one loads."""
    modules = {"main.js": 'import("./late.js");\n', "one.js": "export const ONE = 1;\n"}
    with pytest.raises(ValueError, match=re.escape(why)):
        bundle(modules | ({} if late is None else {"late.js": late}), "main.js")
    modules["main.js"] = 'import { ONE } from "./one.js";\nimport("./one.js").then(ONE);\n'
    with pytest.raises(ValueError, match=re.escape("one.js: is imported, and loaded later")):
        bundle(modules, "main.js")


def test_all_modules_of_the_page_are_in_it():
    """Each once, after those that it imports, at once or with what is loaded later."""
    made = bundle(MODULES, "main.js")
    (later,) = made.later.values()
    order = re.findall(r"^// (\S+\.js)$", made.text + later, re.MULTILINE)
    assert sorted(order) == sorted(MODULES)
    for path in order:
        for there in re.findall(r'^(?:import|\}) .*"(\.\S+)";$', MODULES[path], re.MULTILINE):
            imported = (PAGE_FOLDER / path).parent / there
            place = order.index(imported.resolve().relative_to(PAGE_FOLDER).as_posix())
            assert place < order.index(path), (path, there)


def test_the_first_file_loads_files_that_a_browser_may_keep():
    """Their names change with their content; the modules one by one remain, for who looks."""
    files = read_page()
    first = files["index.html"].content.decode()
    names = re.findall(r'"page/([0-9a-f]{32}-(?:main\.js|style\.css))"', first)
    assert [name[33:] for name in names] == ["style.css", "main.js"]
    assert {files[name].is_named_by_content for name in names} == {True}
    assert not files["main.js"].is_named_by_content
    assert files["modules.html"].content == (PAGE_FOLDER / "index.html").read_bytes()
    style = Path(PAGE_FOLDER / "style.css").read_text("utf-8")
    assert files[names[0]].content.decode() == short_style(style)
    sent = len(files["index.html"].compressed) + sum(len(files[name].compressed) for name in names)
    assert sent < 160_000
    later = re.findall(rb'import\("\./([0-9a-f]{32}-[a-z]+\.js)"\)', files[names[1]].content)
    assert [name[33:] for name in map(bytes.decode, later)] == ["figures.js"]
    assert all(files[name.decode()].is_named_by_content for name in later)
    assert sum(len(files[name.decode()].compressed) for name in later) < 14_000
