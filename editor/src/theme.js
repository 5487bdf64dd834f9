// The colours of the console, in light and dark: the page's theme switches them by CSS alone.
import { HighlightStyle, syntaxHighlighting } from "@codemirror/language";
import { EditorView } from "@codemirror/view";
import { tags } from "@lezer/highlight";

const LIGHT = {
  "--code-ink": "#1f2937", "--code-keyword": "#6d28d9", "--code-string": "#166534", "--code-number": "#9a3412",
  "--code-comment": "#57606a", "--code-function": "#1d4ed8", "--code-type": "#0f6b63", "--code-wrong": "#b91c1c",
  "--code-line": "rgb(99 102 241 / .06)", "--code-chosen": "#c7d2fe", "--code-match": "#fde68a",
};
const DARK = {
  "--code-ink": "#e5e7eb", "--code-keyword": "#c4b5fd", "--code-string": "#86efac", "--code-number": "#fdba74",
  "--code-comment": "#a3acb9", "--code-function": "#93c5fd", "--code-type": "#5eead4", "--code-wrong": "#fca5a5",
  "--code-line": "rgb(129 140 248 / .09)", "--code-chosen": "#3730a3", "--code-match": "#78550f",
};

const frame = EditorView.theme({
  "&": {
    ...LIGHT, color: "var(--code-ink)", backgroundColor: "var(--face)", border: "1px solid var(--line)",
    borderRadius: "6px", fontSize: ".8125rem", maxHeight: "min(70vh, 40rem)", minWidth: "0", overflow: "hidden",
  },
  ".dark &": { ...DARK, borderColor: "var(--color-base-700)" },
  "&.cm-focused": { outline: "2px solid var(--color-primary-500)", outlineOffset: "1px" },
  "&.c-code-wrong": { borderColor: "var(--code-wrong)" },
  ".cm-scroller": { fontFamily: "var(--font-mono)", lineHeight: "1.55", overflow: "auto", containerType: "inline-size" },
  ".cm-content, .cm-gutter": { minHeight: "15rem" },
  ".cm-content": { padding: ".5rem 0", caretColor: "var(--code-ink)" },
  ".cm-content ::selection, .cm-line::selection": { backgroundColor: "var(--code-chosen)" },
  ".cm-gutters": { backgroundColor: "var(--soft)", color: "var(--quiet)", borderRight: "1px solid var(--line)" },
  ".cm-gutter-lint": { width: "1.1em" },
  ".cm-activeLine": { backgroundColor: "var(--code-line)" },
  ".cm-activeLineGutter": { backgroundColor: "transparent", color: "var(--ink)" },
  "&.cm-focused .cm-matchingBracket, .cm-selectionMatch": { backgroundColor: "var(--code-chosen)" },
  "&.cm-focused .cm-nonmatchingBracket": { backgroundColor: "transparent", color: "var(--code-wrong)" },
  ".cm-searchMatch": { backgroundColor: "var(--code-match)" },
  ".cm-searchMatch-selected": { backgroundColor: "var(--code-match)", outline: "2px solid var(--color-primary-500)" },
  ".cm-lintRange-error": {
    backgroundImage: "none", textDecoration: "underline wavy var(--code-wrong)", textUnderlineOffset: "3px",
  },
  ".cm-said": {
    color: "var(--code-wrong)", fontFamily: "var(--font-sans, sans-serif)", padding: ".125rem .5rem .25rem",
    margin: "0", whiteSpace: "pre-wrap", overflowWrap: "anywhere", position: "sticky", left: "0", boxSizing: "border-box", maxWidth: "calc(100cqw - 3.5rem)",
  },
  ".cm-tooltip": {
    backgroundColor: "var(--face)", color: "var(--code-ink)", border: "1px solid var(--line)", borderRadius: "6px",
    boxShadow: "0 4px 12px rgb(0 0 0 / .18)", overflow: "hidden", maxWidth: "min(36rem, calc(100vw - 2rem))",
  },
  ".cm-tooltip.cm-tooltip-autocomplete": { overflow: "visible" },
  ".cm-tooltip-autocomplete > ul": { fontFamily: "var(--font-mono)", maxHeight: "14rem" },
  ".cm-tooltip-autocomplete > ul > li": { padding: ".1875rem .5rem", lineHeight: "1.4" },
  ".cm-tooltip-autocomplete > ul > li[aria-selected]": { backgroundColor: "var(--color-primary-600)", color: "#fff" },
  ".cm-completionMatchedText": { textDecoration: "none", fontWeight: "700" },
  ".cm-completionDetail": { marginLeft: ".75em", fontStyle: "normal", color: "var(--quiet)" },
  "li[aria-selected] .cm-completionDetail": { color: "#e0e7ff" },
  ".cm-completionInfo": { padding: ".5rem .75rem", maxWidth: "22rem", lineHeight: "1.45" },
  ".cm-completionInfo code": { display: "block", marginBottom: ".25rem", overflowWrap: "anywhere" },
  ".cm-tooltip-lint": { padding: ".125rem 0" },
  ".cm-diagnostic": { padding: ".25rem .75rem", borderLeft: "3px solid var(--code-wrong)" },
  ".cm-panels": { backgroundColor: "var(--soft)", color: "var(--code-ink)" },
  ".cm-panels.cm-panels-bottom": { borderTop: "1px solid var(--line)" },
  ".cm-panel input, .cm-panel button": {
    backgroundColor: "var(--face)", backgroundImage: "none", color: "var(--code-ink)",
    border: "1px solid var(--line)", borderRadius: "4px", padding: ".125rem .5rem",
  },
  ".cm-panel.cm-search": { padding: ".5rem 2rem .5rem .5rem" },
  ".cm-panel.cm-search [name=close]": { padding: "0 .5rem", fontSize: "1rem" },
});

const colours = HighlightStyle.define([
  { tag: [tags.keyword, tags.operatorKeyword, tags.controlKeyword, tags.definitionKeyword, tags.moduleKeyword], color: "var(--code-keyword)" },
  { tag: [tags.string, tags.special(tags.string), tags.docString], color: "var(--code-string)" },
  { tag: [tags.number, tags.bool, tags.null], color: "var(--code-number)" },
  { tag: tags.comment, color: "var(--code-comment)", fontStyle: "italic" },
  { tag: [tags.function(tags.variableName), tags.function(tags.definition(tags.variableName)), tags.function(tags.propertyName)], color: "var(--code-function)" },
  { tag: [tags.className, tags.typeName, tags.definition(tags.className), tags.meta], color: "var(--code-type)" },
  { tag: tags.invalid, color: "var(--code-wrong)" },
]);

export const theme = [frame, syntaxHighlighting(colours)];
