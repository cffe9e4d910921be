// The list of tasks: the server renders it, also for a search as it is typed. What happens in tasks brings it up to date.

import { getHTML } from './api.js';
import { takes } from './calls.js';
import { start } from './choose.js';
import { pageOf } from './fragment.js';
import { pin, remove, rename, repair, tag, undo } from './actions.js';
import { Questions } from './questions.js';
import { Selection } from './selection.js';
import { Tree } from './tree.js';
import { button, el, keepFocus, quietly, tried } from './ui.js';
import { offerValues } from './values.js';

const settle = 150; // milliseconds after a key, before it is searched
const calm = 700; // and after an event, before the list is read anew

const partOf = ({ dataset: { task }, className }) => (task ? `[data-task="${CSS.escape(task)}"]` : '.' + className);

const shows = /^(task|run|question|turn\.ended|message\.added|history|usage|checkpoint\.restored)/;

export class History {
  took = 0; // milliseconds that the newest list took: a busy task may keep a slow server busy for a fifth of the time

  constructor(main, keys) {
    this.main = main;
    this.form = main.querySelector('form[role=search]');
    this.field = this.form.querySelector('[name=q]');
    this.field.addEventListener('input', () => this.later(settle));
    this.form.addEventListener('change', (e) => { if (e.target !== this.field) this.later(0); });
    this.form.addEventListener('submit', (e) => { e.preventDefault(); this.later(0); });
    offerValues(this.form);
    const section = document.getElementById('questions') || el('section', { id: 'questions', class: 'questions', 'aria-label': 'Waiting for you' },
      el('h2', { hidden: true }, 'Waiting for you ', el('span', { class: 'n' })));
    if (!section.isConnected) this.form.before(section);
    this.questions = new Questions('', section);
    this.questions.onchange = () => {
      const n = this.questions.all().length, heading = section.querySelector('h2');
      if (heading) heading.hidden = !n;
      if (heading?.querySelector('.n')) heading.querySelector('.n').textContent = n;
    };
    this.questions.load().catch(quietly);
    const begin = tried(() => start(this.workspaces()));
    (this.form.querySelector('.bar') || this.form).append(button('New task', begin, { id: 'start', class: 'primary' }));
    if (location.hash === '#start-task') {
      history.replaceState(null, '', location.pathname + location.search);
      begin();
    }
    keys.on(['j', 'ArrowDown'], 'the next task or hit', () => this.move(1));
    keys.on(['k', 'ArrowUp'], 'the task or hit before', () => this.move(-1));
    keys.on(['N'], 'start a task', begin);
    keys.on(['a'], 'go to the first open question', () => this.questions.all()[0]?.focus());
    keys.on(['y'], 'approve it, or the one that has the focus', (e) => this.questions.press('y', e));
    keys.on(['n'], 'deny it: write the reason, Enter sends it', (e) => this.questions.press('n', e));
    keys.on(['1', '2', '3', '4', '5', '6', '7', '8', '9'], 'answer it with a suggestion', (e) => this.questions.press(e.key, e));
    this.tree = new Tree(main);
    this.selection = new Selection(main, keys, () => this.refresh());
    this.adorn();
    const some = (act, one) => () => (this.selection.size ? void act(this.selection) : this.act(one));
    keys.on(['e'], 'rename the task', () => this.act(rename));
    keys.on(['t'], 'its tags, or tags for all that are selected', some((s) => s.tag(), tag));
    keys.on(['p'], 'pin it, or not; pin all that are selected', some((s) => s.pin(true), pin));
    keys.on(['u'], 'take back what was last done to it, or to those that were selected', () => (this.selection.back ? void this.selection.back() : this.act(undo)));
    keys.on(['Delete', '#'], 'delete it, or all that are selected', some((s) => s.remove(), remove));
    keys.on(['o'], 'fold or unfold its subtasks', () => this.tree.toggle(this.row()));
  }

  // adorn adds what needs scripts to the rows that the server rendered.
  adorn() {
    this.tree.adorn();
    this.selection.adorn();
    for (const row of this.main.querySelectorAll('.row[data-task]:has(.damage):not(:has(.repair))')) {
      row.querySelector('.c-title').append(button('Repair', tried(async () => {
        await repair(row.dataset.task);
        await this.refresh();
      }), { class: 'repair', 'data-does': 'repair' }));
    }
  }

  links() {
    return [...this.main.querySelectorAll('.row[data-task] .c-title > a, .group h2 a, .hits a')].filter((a) => a.checkVisibility());
  }

  row() {
    return document.activeElement?.closest?.('.row[data-task]');
  }

  workspaces() {
    return [...new Set([...this.main.querySelectorAll('.c-folder a')].map((e) => e.title).filter(Boolean))];
  }

  move(by) {
    const links = this.links();
    if (!links.length) return false;
    const at = links.indexOf(document.activeElement);
    const next = links[at < 0 ? 0 : Math.max(0, Math.min(links.length - 1, at + by))];
    next.focus();
    next.scrollIntoView({ block: 'nearest' });
  }

  act(what) {
    const row = this.row();
    if (!row) return false;
    const next = row.nextElementSibling || row.previousElementSibling;
    tried(async () => {
      const gone = await what(row.dataset.task);
      await this.refresh();
      if (gone === true && next) this.main.querySelector(partOf(next) + ' .c-title > a')?.focus();
    })();
  }

  events(list) {
    if (list.some((e) => shows.test(e.type))) this.later(Math.max(calm, 4 * this.took), true);
    for (const { type, data: d } of list) if (type === 'question.closed') this.questions.closed({ ...d, id: d.task_id + '.' + d.question });
    if (list.some((e) => e.type.startsWith('question.') || takes.test(e.type))) this.questions.load().catch(quietly);
  }

  again() {
    this.lost();
  }

  lost() {
    this.questions.load().catch(quietly);
    this.refresh().catch(quietly);
  }

  // later reads the list after a moment. A key begins the moment anew; an event does not, or a busy task would put it off
  // for ever.
  later(wait, event = false) {
    if (event && this.timer) return;
    clearTimeout(this.timer);
    this.timer = setTimeout(() => {
      this.timer = 0;
      this.refresh().catch(quietly);
    }, wait);
  }

  // address is that of the list as the form has it; a page of a longer list stays the page until the form changes.
  address() {
    const q = new URLSearchParams([...new FormData(this.form)].filter(([, v]) => v !== ''));
    const now = new URLSearchParams(location.search);
    const page = ['cursor', 'trail'].filter((k) => now.has(k)).map((k) => [k, now.get(k)]);
    for (const [k] of page) now.delete(k);
    if ([...q].sort().join('&') === [...now].filter(([, v]) => v !== '').sort().join('&')) for (const [k, v] of page) q.set(k, v);
    return location.pathname + (q.size ? '?' + q : '');
  }

  // refresh replaces what lies under the form. An older request is given up.
  async refresh() {
    this.abort?.abort();
    const abort = this.abort = new AbortController();
    const address = this.address();
    const slow = setTimeout(() => this.main.setAttribute('aria-busy', 'true'), 400); // a list that comes at once does not flicker
    const began = performance.now();
    let page;
    try {
      page = pageOf(await getHTML(address, { signal: abort.signal }));
    } finally {
      clearTimeout(slow);
      if (abort === this.abort) this.main.removeAttribute('aria-busy');
    }
    if (abort !== this.abort) return;
    this.took = performance.now() - began;
    if (address !== location.pathname + location.search) history.replaceState(null, '', address);
    const fresh = page.querySelector('main.history form[role=search]');
    if (!fresh) return;
    const orders = this.form.querySelector('[name=sort]'), offered = fresh.querySelector('[name=sort]');
    if (orders.textContent !== offered.textContent) orders.replaceWith(document.importNode(offered, true)); // a search has others
    if (!page.querySelector('.setup')) this.main.querySelector('.setup')?.remove();
    const part = document.activeElement?.closest('[data-task], .chips, .pages'), rest = [];
    for (let n = fresh.nextSibling; n; n = n.nextSibling) rest.push(document.importNode(n, true));
    keepFocus(part, () => {
      while (this.form.nextSibling) this.form.nextSibling.remove();
      this.form.after(...rest);
      this.adorn();
    }, () => this.main.querySelector(partOf(part)));
  }
}
