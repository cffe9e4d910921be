// The forms of the settings and of the first steps. Each names the request that it makes; the server has rendered what it
// shows, and renders it again after a change.

import { act, getHTML } from './api.js';
import { pageOf } from './fragment.js';
import { el, note } from './ui.js';

// words cuts a command line as a shell does: blanks separate, quotes hold together, also within a word.
const quoted = /"((?:[^"\\]|\\.)*)"|'([^']*)'/g;
const words = (line) => (line.match(/(?:"(?:[^"\\]|\\.)*"|'[^']*'|\S)+/g) || []).map((w) => w.replace(quoted, (_, a, b) => a?.replace(/\\(.)/g, '$1') ?? b));

const bodies = {
  server: ({ name, line }) => {
    if (/^https?:\/\//.test(line.trim())) return { name, url: line.trim() };
    const [command, ...args] = words(line);
    return { name, command, args };
  },
  source: ({ path }) => ({ path: path.trim() }),
};

// meant is a text with the characters that the server named, such as ⟦U+200E⟧: what is not changed stays as it was stored.
const meant = (text) => text.replace(/⟦U\+([0-9A-F]{4,6})⟧/g, (_, code) => String.fromCodePoint(parseInt(code, 16)));

function bodyOf(form, unset) {
  const v = Object.fromEntries([...new FormData(form)].map(([name, value]) => [name, meant(value)]));
  const { key, list, also, form: kind } = form.dataset;
  if (unset) return { unset: [key] };
  if (key) {
    const values = (list === undefined ? [v.value] : v.value.split('\n')).map((l) => l.trim()).filter(Boolean);
    const set = { [key]: values };
    if (also) set[also.split('=')[0]] = [also.split('=')[1]];
    return values.length ? { set } : { unset: [key] };
  }
  if (kind) return bodies[kind](v);
  return 'key' in v ? { key: v.key.trim(), force: v.force === 'true' } : {};
}

// enable makes the forms work: without scripts they would send nothing to nobody.
function enable(root) {
  for (const button of root.querySelectorAll('form.do button')) button.disabled = false;
}

// again renders the page anew, with what was opened still open, what was typed still there, and the focus where it was.
async function again() {
  const at = (form) => form && form.dataset.act + (form.dataset.key || '') + (form.dataset.query || '');
  const typed = [...document.querySelectorAll('main form.do')].flatMap((f) => [...f.elements].filter((e) => e.name && e.value !== (e.defaultValue ?? e.value)).map((e) => [at(f), e.name, e.value]));
  const focused = at(document.activeElement?.closest?.('form.do'));
  const open = new Set([...document.querySelectorAll('main details[open]')].map((d) => at(d.querySelector('form.do'))));
  const fresh = pageOf(await getHTML(location.pathname + location.search)).querySelector('main');
  const main = document.querySelector('main');
  const [from, to] = main.classList.contains('history') ? [fresh.querySelector('.setup'), main.querySelector('.setup')] : [fresh, main];
  if (!from || !to) {
    location.href = '/start';
    return;
  }
  to.replaceChildren(...[...from.childNodes].map((n) => document.importNode(n, true)));
  enable(to);
  for (const f of to.querySelectorAll('form.do')) for (const [form, name, value] of typed) if (form === at(f)) f.elements[name].value = value;
  for (const d of to.querySelectorAll('details')) if (d.querySelector('form.do') && open.has(at(d.querySelector('form.do')))) d.open = true;
  const form = [...to.querySelectorAll('form.do')].find((f) => at(f) === focused);
  (form?.querySelector('button') || to.querySelector('h1, h2'))?.focus();
}

// unmoved fails when a setting has another value than the page shows, and shows it: saving would undo a change from elsewhere.
async function unmoved({ dataset: { key } }) {
  const row = (page) => page.querySelector(`[data-setting="${CSS.escape(key)}"] .now`), value = (now) => [...now.querySelectorAll('[dir]')].map((e) => e.textContent).join('\n');
  const shown = key && row(document), now = shown && row(pageOf(await getHTML(location.pathname + location.search)));
  if (!now || value(now) === value(shown)) return;
  shown.replaceWith(document.importNode(now, true));
  throw new Error('It was changed elsewhere: its value stands above now. Save again to replace it.');
}

const dollars = (cost) => (cost === null || cost === undefined ? 'a price that is not known' : '$' + cost);

async function send(form, unset) {
  const out = form.querySelector('output');
  if (form.dataset.busy) return;
  form.dataset.busy = true;
  out.className = '';
  out.textContent = form.matches('.test') ? 'Waiting for the model …' : 'Saving …';
  const [method, path] = form.dataset.act.split(' ');
  try {
    const query = form.dataset.query ? '?' + new URLSearchParams([meant(form.dataset.query).split(/=(.*)/s).slice(0, 2)]) : '';
    await unmoved(form);
    const done = await act(method, path + query, method === 'DELETE' ? undefined : bodyOf(form, unset));
    if (form.matches('.test')) {
      out.className = 'good';
      out.textContent = `It works: ${done.model} answered “${done.text}” in ${(done.elapsed_ms / 1000).toFixed(1)} s, for ${dollars(done.cost)}. `;
      out.append(el('a', { href: '/#start-task' }, 'Start a task'));
      return;
    }
    form.reset();
    note(['Saved.', ...(done?.warnings || [])].join(' '));
    await again();
  } catch (e) {
    out.className = 'bad';
    out.textContent = e.message + (e.document?.suggestions?.length ? '. Try: ' + e.document.suggestions[0] : '');
    const doubt = form.querySelector('.doubt');
    if (doubt && e.code === 'doubtful_key') doubt.hidden = false;
    for (const { detail } of e.document?.errors || []) out.textContent += ' ' + detail;
  } finally {
    delete form.dataset.busy;
  }
}

export function settings() {
  enable(document);
  document.addEventListener('submit', (e) => {
    if (!e.target.matches('form.do')) return;
    e.preventDefault();
    send(e.target, false);
  });
  document.addEventListener('click', (e) => {
    const button = e.target.closest?.('form.do .unset');
    if (button) send(button.form, true);
  });
}
