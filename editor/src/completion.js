// What is suggested: the functions of the platform, the tenant's secrets, and the names that the sandbox has.
import { localCompletionSource } from "@codemirror/lang-python";
import { syntaxTree } from "@codemirror/language";

const described = (about, signature) => () => {
  const box = document.createElement("div");
  const code = document.createElement("code");
  code.textContent = signature;
  box.append(code, about);
  return box;
};

// A call is completed with its parentheses, and the cursor between them.
const call = (view, { label }, from, to) => {
  const follows = view.state.sliceDoc(to, to + 1) === "(";
  view.dispatch({
    changes: { from, to, insert: follows ? label : `${label}()` },
    selection: { anchor: from + label.length + 1 },
    userEvent: "input.complete",
  });
};

const option = ({ name, signature, about }) => ({
  label: name,
  type: signature.startsWith("(") ? "function" : "property",
  detail: signature.startsWith("(") ? "" : signature,
  info: about && described(about, name + signature),
  apply: signature.startsWith("(") ? call : name,
  boost: 10,
});

const plain = (type) => (label) => ({ label, type });

const escaped = (text) => text.replace(/[.*+?^${}()|[\]\\]/g, "\\$&");

// A variable that holds the response of a request: `reply = http.get(…)`.
const isResponse = (state, name) =>
  new RegExp(`(^|[^\\w.])${escaped(name)}\\s*=\\s*(await\\s+)?http\\.\\w+\\(`, "m").test(state.doc.toString());

export const sources = (offered) => {
  const names = [
    ...offered.functions.map(option),
    ...offered.objects.map((each) => ({ label: each, type: "variable", boost: 10 })),
    ...offered.keywords.map(plain("keyword")),
    ...offered.builtins.map(plain("variable")),
  ];
  const secrets = offered.secrets.map(plain("constant"));
  const modules = offered.modules.map(plain("namespace"));
  const members = Object.fromEntries(
    Object.entries(offered.members).map(([name, list]) => [name, list.map(option)]),
  );

  const after = (state, name) => {
    if (offered.objects.includes(name)) return members[name];
    return isResponse(state, name) ? members.Response : null;
  };

  const offer = (context) => {
    const { state, pos } = context;
    const line = state.doc.lineAt(pos);
    const before = line.text.slice(0, pos - line.from);
    const found = (length, options, validFor = /^\w*$/) =>
      options && options.length ? { from: pos - length, options, validFor } : null;

    const secret = /\bsecret\(\s*["']([\w-]*)$/.exec(before);
    if (secret) return found(secret[1].length, secrets, /^[\w-]*$/);
    if (/String|Comment/.test(syntaxTree(state).resolveInner(pos, -1).name)) return null;
    const member = /(?:(\w+)|\))\.(\w*)$/.exec(before);
    if (member) return found(member[2].length, member[1] ? after(state, member[1]) : null);
    const module = /^\s*(?:import|from)\s+(\w*)$/.exec(before);
    if (module) return found(module[1].length, modules);
    const word = context.matchBefore(/\w+/);
    if (!word && !context.explicit) return null;
    if (word && /^\d/.test(word.text)) return null;
    return found(word ? word.text.length : 0, names);
  };
  return [offer, localCompletionSource];
};
