// The list of a task's messages: fragments of the server, newest at the end. Older ones are loaded when the top comes near.

import { get, getHTML, taskPath } from './api.js';
import { fragment } from './fragment.js';
import { quietly } from './ui.js';

const pageSize = 60;
const near = '1200px'; // of the top: so far before it is reached the messages above are asked for

export class Messages {
  // end: the newest message is among those that are shown. rendered: they are shown as a conversation; another view of
  // the history does not follow what happens.
  constructor(task, list, { first, last, end, rendered }) {
    this.task = task;
    this.end = end;
    this.rendered = rendered;
    this.list = list;
    this.first = first;
    this.last = last;
    this.hides = () => false; // whether a row is shown as streamed text yet, by its ts
    this.queue = Promise.resolve();
    this.wanted = { added: false, changed: new Set() };
    this.top = document.createElement('div');
    this.top.id = 'loading-older';
    this.top.setAttribute('role', 'status');
    list.before(this.top);
    this.bottom = document.createElement('div');
    list.after(this.bottom);
    if (!rendered) return;
    const watch = (edge, margin, load) => {
      const observer = new IntersectionObserver((seen) => {
        if (seen.at(-1).isIntersecting) load().then((more) => {
          if (!more) return;
          observer.unobserve(edge); // it reports changes alone, and the edge may be near still or again
          observer.observe(edge);
        });
      }, { rootMargin: margin });
      observer.observe(edge);
    };
    watch(this.top, near + ' 0px 0px 0px', () => this.older());
    if (!end) watch(this.bottom, '0px 0px ' + near + ' 0px', () => this.later());
    for (const nav of document.querySelectorAll('nav.pages')) nav.hidden = true; // links for those without scripts
  }

  rows() {
    return [...this.list.children].filter((e) => e.dataset.index);
  }

  byTime(ts) {
    return this.list.querySelector(`:scope > [data-ts="${ts}"]`);
  }

  byNumber(n) {
    return document.getElementById('ui-' + n);
  }

  // atEnd reports whether the person looks at the end, so that the page goes on with what comes.
  atEnd() {
    const page = document.scrollingElement;
    return this.end && page.scrollHeight - page.scrollTop - innerHeight < 60;
  }

  toEnd() {
    document.scrollingElement.scrollTop = document.scrollingElement.scrollHeight;
  }

  // keeping runs a change of the page, and keeps what the person looks at in its place: the end, or the row at the top.
  keeping(change) {
    if (this.atEnd()) {
      change();
      this.toEnd();
      return;
    }
    const root = document.documentElement;
    root.style.overflowAnchor = 'none'; // the browser's own correction would be added to this one
    const row = this.rows().find((r) => r.getBoundingClientRect().bottom > 0);
    const before = row?.getBoundingClientRect().top;
    change();
    if (row?.isConnected) scrollBy({ top: row.getBoundingClientRect().top - before, behavior: 'instant' });
    requestAnimationFrame(() => requestAnimationFrame(() => { root.style.overflowAnchor = ''; }));
  }

  // inOrder makes requests of this list wait for each other: each begins where the one before it ended.
  inOrder(work) {
    this.queue = this.queue.then(work).catch(quietly);
    return this.queue;
  }

  fetch(query) {
    return getHTML(taskPath(this.task, '/messages?' + new URLSearchParams(query))).then(fragment);
  }

  // older loads what comes before the first message, and reports whether there was any.
  async older(to = 0) {
    if (this.loading) return this.loading.then(() => true);
    if (this.first <= 1 || !this.rendered) return false;
    const before = this.first;
    this.top.textContent = 'Loading older messages …';
    this.loading = this.inOrder(async () => {
      do {
        const rows = await this.fetch({ before: this.first, limit: pageSize });
        const items = [...rows.querySelectorAll('[data-index]')];
        const first = items.length ? +items[0].dataset.index : 1;
        this.keeping(() => this.list.prepend(...items));
        this.first = items.length ? first : 1;
      } while (to && this.first > to && this.first > 1);
    });
    await this.loading;
    this.loading = null;
    this.top.textContent = '';
    return this.first < before;
  }

  // later loads what comes after a window that is not the end, and reports whether there was any.
  async later() {
    if (this.end || this.loadingLater) return false;
    this.loadingLater = true;
    const before = this.last;
    await this.inOrder(async () => {
      const rows = await this.fetch({ after: this.last, limit: pageSize });
      const items = [...rows.querySelectorAll('[data-index]')];
      this.list.append(...items);
      if (items.length) this.last = +items.at(-1).dataset.index;
      this.end = items.length < pageSize;
    });
    this.loadingLater = false;
    return this.last > before;
  }

  // note notes what an event said about a message, and fetches all of a batch of events at once. A message that changed
  // comes before new ones: nothing is shown behind one that is not up to date.
  note({ added, ts }) {
    if (!this.rendered) return;
    if (added) this.wanted.added = true;
    else this.wanted.changed.add(ts);
    this.catchUp();
  }

  // catchUp fetches what was noted. What a broken connection kept away stays noted, until the page is live again.
  catchUp() {
    if (this.asked || !this.wanted.added && !this.wanted.changed.size) return;
    this.asked = true;
    this.inOrder(async () => {
      this.asked = false;
      const { added, changed } = this.wanted;
      this.wanted = { added: false, changed: new Set() };
      try {
        for (const ts of changed) {
          const row = this.byTime(ts);
          if (row) await this.refresh(row);
        }
        if (this.end && (added || [...changed].some((ts) => !this.byTime(ts)))) await this.newer();
      } catch (problem) {
        this.wanted.added ||= added;
        for (const ts of changed) this.wanted.changed.add(ts);
        throw problem;
      }
    });
  }

  async newer() {
    for (;;) {
      const rows = await this.fetch({ after: this.last, limit: 200 });
      const items = [...rows.querySelectorAll('[data-index]')].filter((r) => +r.dataset.index > this.last);
      if (!items.length) return;
      for (const item of items) item.hidden = this.hides(item.dataset.ts);
      this.keeping(() => {
        this.list.append(...items);
        this.onrows?.(items);
      });
      this.last = +items.at(-1).dataset.index;
      if (!this.first) this.first = +items[0].dataset.index;
      if (items.length < 200) return;
    }
  }

  async refresh(row) {
    const n = +row.dataset.index;
    const rows = await this.fetch({ after: n - 1, limit: 1 });
    const item = rows.querySelector('[data-index]');
    if (!item || +item.dataset.index !== n) return;
    item.hidden = this.hides(item.dataset.ts);
    const focused = row === document.activeElement;
    const open = [...row.querySelectorAll('details')].map((d) => d.open);
    this.keeping(() => {
      row.replaceWith(item);
      item.querySelectorAll('details').forEach((d, i) => { if (open[i] !== undefined) d.open = open[i]; });
      this.onrows?.([item]);
    });
    if (focused) { item.tabIndex = -1; item.focus({ preventScroll: true }); }
  }

  // reload shows the end anew, after a rewind or when events were missed.
  reload() {
    if (!this.rendered || !this.end) {
      location.reload();
      return this.queue;
    }
    return this.inOrder(async () => {
      const rows = await this.fetch({ limit: pageSize });
      const items = [...rows.querySelectorAll('[data-index]')];
      for (const item of items) item.hidden = this.hides(item.dataset.ts);
      this.keeping(() => {
        this.list.replaceChildren(...items);
        this.onrows?.(items);
      });
      this.first = items.length ? +items[0].dataset.index : 0;
      this.last = items.length ? +items.at(-1).dataset.index : 0;
    });
  }

  // stored gives the text of a row as it is on disk; '' when it is not there yet.
  async stored(ts) {
    const window = await get(taskPath(this.task, '/messages?limit=20'));
    return window.items.find((m) => String(m.ts) === String(ts))?.text || '';
  }
}
