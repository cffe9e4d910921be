// Small pieces of the page: elements, notes to the person, dialogs.

// marked is a text in which each character that acts or hides is named, such as ⟦U+202E⟧, as the server does it in its
// fragments (redact.Marked): what the API gives is as it was stored. Escape sequences of a terminal go.
export function marked(text) {
  if (!acts.test(text)) return text;
  return text.toWellFormed().replaceAll(escapes, '').replaceAll('\r\n', '\n').replaceAll('\r', '\n').replaceAll(act, (c, at, all) =>
    joiner.test(c) && (all.charCodeAt(at - 1) >= 0x80 || all[at + c.length] === '\u20e3') ? c : '⟦U+' + c.codePointAt(0).toString(16).toUpperCase().padStart(4, '0') + '⟧');
}
const joiner = /[\u200c\u200d\u034f\ufe00-\ufe0f\u{e0100}-\u{e01ef}]/u; // it stays behind what it can join
const acts = new RegExp('(?![\\n\\t])[\\p{Cc}\\p{Cf}\\p{Zl}\\p{Zp}\\p{Co}\\p{Cs}]|' + joiner.source, 'u'), act = new RegExp(acts, 'gu');
const escapes = /\x1b(?:\[[0-?]*[ -/]*[@-~]|[\]PX^_][^\x07\x1b]*(?:\x07|\x1b\\)?|[ -/]*[0-~])?/g;

// short is a title as the server shows it (markup.Short): on one line, and not all of a long first message.
export function short(title = '') {
  const all = [...marked(title).split(/\s+/).filter(Boolean).join(' ')];
  return all.length > 200 ? all.slice(0, 200).join('') + '…' : all.join('');
}

// el makes an element. Text given to it stays text.
export function el(name, properties = {}, ...children) {
  const e = document.createElement(name);
  for (const [key, value] of Object.entries(properties)) {
    if (value === undefined || value === null || value === false) continue;
    if (key.startsWith('on')) e.addEventListener(key.slice(2), value);
    else if (key === 'class') e.className = value;
    else e.setAttribute(key, value === true ? '' : value);
  }
  e.append(...children.flat(Infinity).filter((c) => c !== null && c !== undefined && c !== false).map((c) => (c instanceof Node ? c : marked(String(c)))));
  return e;
}

export const button = (text, press, properties = {}) => el('button', { type: 'button', onclick: press, ...properties }, text);

// note says what became of an act, with at most one thing to do about it, and one place to look; screen readers speak it.
// It stays until the next one, or until it is closed: a note that goes by itself is missed.
export function note(text, { wrong = false, does = '', act = null, link = null } = {}) {
  const close = () => one.remove();
  const one = el('div', { class: wrong ? 'note wrong' : 'note' }, el('span', {}, text),
    link && el('a', { href: link[1] }, link[0]), act && button(does, () => { close(); act(); }), button('Close', close, { 'aria-label': 'Close this note' }));
  let box = document.getElementById('notes');
  if (!box) document.body.append(box = el('div', { id: 'notes', role: 'status', 'aria-live': 'polite' }));
  box.replaceChildren(one);
}

export const failed = (e) => { if (e.name !== 'AbortError') note(e.message, { wrong: true }); };

// quietly is for what the page asks by itself: that the server does not answer is said in one place, and what was missed
// is asked again once it does.
export const quietly = (e) => { if (e.code !== 'unreachable') failed(e); };

// tried runs an act and says why it failed. The second click of a double click is none: it would undo another action.
export const tried = (act) => async (...args) => {
  if (args[0]?.detail > 1) return;
  try {
    return await act(...args);
  } catch (e) {
    failed(e);
  }
};

// dialog shows a form and gives its data when it is sent, or null. Buttons with a value send it, too. With no word for
// what it does it only shows. One that is shown already is not shown again.
export async function dialog(title, content, { does = 'OK', also = [], danger = false } = {}) {
  if (document.querySelector(`dialog[aria-label="${CSS.escape(title)}"]`)) return null;
  return new Promise((done) => {
    const form = el('form', { method: 'dialog' }, el('h2', {}, title), content,
      el('div', { class: 'acts' },
        does && el('button', { value: 'yes', class: danger ? 'danger' : 'primary' }, does),
        also.map(([value, text]) => el('button', { value }, text)),
        button(does ? 'Cancel' : 'Close', () => box.close(''))));
    const box = el('dialog', { 'aria-label': title }, form);
    box.addEventListener('close', () => {
      const data = new FormData(form);
      box.remove();
      done(box.returnValue ? { value: box.returnValue, data } : null);
    });
    if (!form.querySelector('[autofocus]')) form.querySelector('.acts button').autofocus = true;
    document.body.append(box);
    box.returnValue = '';
    box.showModal();
  });
}

let title = document.title, waiting = 0;

// titled sets the title of the page, and how many questions wait, which stands before it.
export function titled({ text = title, count = waiting }) {
  [title, waiting] = [text, count];
  document.title = (waiting ? `(${waiting}) ` : '') + title;
}

export const field = (label, input) => el('label', { class: 'field' }, el('span', {}, label), input);

export const counted = (n, one, many = one + 's') => n + ' ' + (n === 1 ? one : many);

// diffOf shows a diff, with added lines apart from removed ones. Only before the first hunk do "---" and "+++" name files.
export function diffOf(text) {
  const pre = el('pre', { class: 'diff', tabindex: '0' });
  let head = /^(\+\+\+|---|@@)/;
  for (const line of text.replace(/\n$/, '').split('\n')) {
    if (line.startsWith('@@')) head = /^@@/;
    const kind = head.test(line) ? 'hunk' : line[0] === '+' ? 'add' : line[0] === '-' ? 'del' : '';
    pre.append(el('span', { class: kind || false }, line + '\n'));
  }
  return pre;
}

// typing reports whether keys belong to what is typed into.
export const typing = (target) => target.closest?.('input:not([type=checkbox]):not([type=radio]), textarea, select, [contenteditable]') !== null;

const places = (part) => (part ? [part, ...part.querySelectorAll('a, button, input, summary, [tabindex]')] : []);

// keepFocus runs a change that puts another element in the place of part. The focus within goes to the element that had it,
// if it is still there, to the same link, or to what has its place. found gives the element that took the place.
export function keepFocus(part, change, found) {
  const was = document.activeElement, at = part?.contains(was) ? places(part).indexOf(was) : -1;
  change();
  if (at < 0 || was === document.activeElement) return;
  const all = places(found()), href = was.getAttribute('href');
  (was.isConnected ? was : [all[at], ...all].find((e) => e?.localName === was.localName && e.getAttribute('href') === href) || all[at])?.focus({ preventScroll: true });
}
