// The list of tasks: the server renders it, also for a search as it is typed. What happens in tasks brings it up to date.

import { getHTML } from './api.js';
import { pageOf } from './fragment.js';
import { pin, remove, rename, start, tag, undo } from './actions.js';
import { button, failed, tried } from './ui.js';

const settle = 150; // milliseconds after a key, before it is searched
const calm = 700; // and after an event, before the list is read anew

const shows = /^(task|run|question|turn\.ended|message\.added|history|usage|checkpoint\.restored)/;

export class History {
  constructor(main, keys) {
    this.main = main;
    this.form = main.querySelector('form[role=search]') || document.querySelector('form[role=search]') || main.querySelector('form');
    this.field = this.form?.querySelector('[name=q]');
    this.field?.addEventListener('input', () => this.later(settle));
    this.form?.addEventListener('change', (e) => { if (e.target !== this.field) this.later(0); });
    this.form?.addEventListener('submit', (e) => { e.preventDefault(); this.later(0); });
    addEventListener('popstate', () => location.reload());
    const place = document.getElementById('acts') || this.form?.parentElement || main;
    place.append(button('New task', tried(() => start(this.workspaces())), { id: 'start', class: 'primary' }));
    keys.on(['j', 'ArrowDown'], 'the next task', () => this.move(1));
    keys.on(['k', 'ArrowUp'], 'the task before', () => this.move(-1));
    keys.on(['N'], 'start a task', tried(() => start(this.workspaces())));
    keys.on(['e'], 'rename the task', () => this.act(rename));
    keys.on(['t'], 'its tags', () => this.act(tag));
    keys.on(['p'], 'pin it, or not', () => this.act(pin));
    keys.on(['u'], 'take back what was last done to it', () => this.act(undo));
    keys.on(['Delete', '#'], 'delete it', () => this.act(remove));
  }

  rows() {
    return [...this.main.querySelectorAll('[data-task]')].filter((r) => r.querySelector('a'));
  }

  row() {
    return document.activeElement?.closest?.('[data-task]');
  }

  workspaces() {
    return [...new Set([...this.main.querySelectorAll('[data-workspace]')].map((e) => e.dataset.workspace).filter(Boolean))];
  }

  move(by) {
    const rows = this.rows();
    if (!rows.length) return false;
    const next = rows[Math.max(0, Math.min(rows.length - 1, rows.indexOf(this.row()) + by))];
    next.querySelector('a').focus();
    next.scrollIntoView({ block: 'nearest' });
  }

  act(what) {
    const row = this.row();
    if (!row) return false;
    const next = row.nextElementSibling || row.previousElementSibling;
    tried(async () => {
      const gone = await what(row.dataset.task);
      await this.refresh();
      if (gone === true) this.focus(next?.dataset.task);
    })();
  }

  focus(task) {
    if (task) this.main.querySelector(`[data-task="${CSS.escape(task)}"] a`)?.focus();
  }

  events(list) {
    if (list.some((e) => shows.test(e.type))) this.later(calm, true);
  }

  // later reads the list after a moment. A key begins the moment anew; an event does not, or a busy task would put it off
  // for ever.
  later(wait, event = false) {
    if (event && this.timer) return;
    clearTimeout(this.timer);
    this.timer = setTimeout(() => {
      this.timer = 0;
      this.refresh().catch(failed);
    }, wait);
  }

  address() {
    if (!this.form) return location.pathname + location.search;
    const q = new URLSearchParams([...new FormData(this.form)].filter(([, v]) => v !== ''));
    for (const [k, v] of new URLSearchParams(location.search)) if (!this.form.elements[k] && k !== 'cursor') q.append(k, v);
    return location.pathname + (q.size ? '?' + q : '');
  }

  // refresh replaces what lies under the form. An older request is given up.
  async refresh() {
    this.abort?.abort();
    const abort = this.abort = new AbortController();
    const address = this.address();
    const page = pageOf(await getHTML(address, { signal: abort.signal }));
    if (abort !== this.abort) return;
    if (address !== location.pathname + location.search) history.replaceState(null, '', address);
    const focused = document.activeElement?.closest?.('[data-task]')?.dataset.task;
    for (const id of ['questions', 'results']) {
      const here = document.getElementById(id), there = page.getElementById(id);
      if (here && there) here.replaceWith(document.adoptNode(there));
    }
    this.focus(focused);
  }
}
