// The list of a task's messages: fragments of the server, newest at the end. More of them come when an end of what is
// loaded comes near, and what lies far from the view then goes: a tab holds no more of a long task than of a short one.

import { get, request, taskPath } from './api.js';
import { fragment } from './fragment.js';
import { keepFocus, quietly } from './ui.js';

const pageSize = 40;
const near = 1200; // pixels: so far before an end is reached the messages behind it are asked for
const kept = 300; // rows; more than that stay only near the view

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
        if (seen.at(-1).isIntersecting) load().then((more) => more && look());
      }, { rootMargin: margin });
      const look = () => {
        observer.unobserve(edge); // it reports changes alone, and the edge may be near still or again
        observer.observe(edge);
      };
      look();
      return look;
    };
    this.looks = [watch(this.top, near + 'px 0px 0px', () => this.older()), watch(this.bottom, '0px 0px ' + near + 'px', () => this.later())];
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

  // atEnd reports whether the person looks at the end, so that the page goes on with what comes. grown are pixels that came
  // below the messages since.
  atEnd(grown = 0) {
    const page = document.scrollingElement;
    return this.end && page.scrollHeight - page.scrollTop - innerHeight - grown < 60;
  }

  toEnd() {
    document.scrollingElement.scrollTop = document.scrollingElement.scrollHeight;
  }

  // showEnd goes to the newest message, also when that is not loaded.
  async showEnd() {
    if (!this.end && this.rendered) await this.inOrder(() => this.replace({ limit: pageSize }));
    this.toEnd();
  }

  // keeping runs a change of the page, and keeps the focus, and what the person looks at in its place: the end, or the row
  // at the top.
  keeping(change) {
    const focused = this.list.contains(document.activeElement) && document.activeElement.closest('[data-index]');
    keepFocus(focused || null, () => this.inPlace(change), () => this.byNumber(focused.dataset.index));
  }

  inPlace(change) {
    if (this.atEnd()) {
      change();
      this.toEnd();
      return;
    }
    const root = document.documentElement;
    root.style.overflowAnchor = 'none'; // the browser's own correction would be added to this one
    const before = this.place();
    change();
    this.toPlace(before);
    requestAnimationFrame(() => requestAnimationFrame(() => { root.style.overflowAnchor = ''; }));
  }

  // place is where the person looks: the row at the top, and how far above or below the edge of the window it begins.
  place() {
    const row = this.rows().find((r) => r.getBoundingClientRect().bottom > 0);
    return row && { row, n: +row.dataset.index, y: row.getBoundingClientRect().top };
  }

  // toPlace goes to a place, and reports whether its row is there.
  toPlace({ row, n, y } = {}) {
    const now = row?.isConnected ? row : this.byNumber(n);
    if (now) scrollBy({ top: now.getBoundingClientRect().top - y, behavior: 'instant' });
    return Boolean(now);
  }

  // inOrder makes requests of this list wait for each other: each begins where the one before it ended.
  inOrder(work) {
    this.queue = this.queue.then(work).catch(quietly);
    return this.queue;
  }

  // fetch gives the rows of a part of the history. The server gives fewer where they are large, and says whether more follow.
  async fetch(query) {
    const answer = await request('GET', taskPath(this.task, '/messages?' + new URLSearchParams(query)), { accept: 'text/html' });
    const rows = fragment(await answer.text());
    this.more = /rel="next"/.test(answer.headers.get('Link'));
    const items = [...rows.querySelectorAll('[data-index]')];
    for (const item of items) item.hidden = this.hides(item.dataset.ts);
    return items;
  }

  // span reads from the rows which messages are shown.
  span() {
    const rows = this.rows();
    this.first = +rows[0]?.dataset.index || 0;
    this.last = +rows.at(-1)?.dataset.index || 0;
  }

  // drop lets go of the rows at one end while there are many, unless the view is near them.
  drop(atTop) {
    const rows = this.rows();
    const far = atTop ? rows.slice(0, -kept) : rows.slice(kept);
    const nearest = (atTop ? far.toReversed() : far).find((r) => r.checkVisibility())?.getBoundingClientRect();
    if (!nearest || (atTop ? -nearest.bottom : nearest.top - innerHeight) < 2 * near) return;
    for (const row of far) row.remove();
    if (!atTop) this.end = false;
    this.span();
  }

  // older loads what comes before the first message, and reports whether there was any.
  async older() {
    if (this.loading) return this.loading.then(() => true);
    if (this.first <= 1 || !this.rendered) return false;
    const before = this.first;
    this.top.textContent = 'Loading older messages …';
    this.loading = this.inOrder(async () => {
      const items = await this.fetch({ before: this.first, limit: pageSize });
      this.keeping(() => {
        this.list.prepend(...items);
        this.drop(false);
      });
      this.first = +items[0]?.dataset.index || 1;
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
      const items = await this.fetch({ after: this.last, limit: pageSize });
      this.keeping(() => {
        this.list.append(...items);
        this.drop(true);
      });
      if (items.length) this.last = +items.at(-1).dataset.index;
      this.end = !this.more;
    });
    this.loadingLater = false;
    return this.last > before;
  }

  // again asks for what a broken connection kept away.
  again() {
    this.catchUp();
    for (const look of this.looks || []) look();
  }

  // note notes what an event said about a message, and fetches all of a batch of events at once. A message that changed
  // comes before new ones: nothing is shown behind one that is not up to date.
  note({ added, ts }) {
    if (!this.rendered) return;
    if (added) this.wanted.added = true;
    else this.wanted.changed.add(ts);
    this.catchUp();
  }

  // latest brings the newest messages up to date: what the task recorded about files stands behind them.
  latest() {
    for (const row of this.rows().slice(-3)) if (row.dataset.ts) this.note({ ts: row.dataset.ts });
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
      const items = (await this.fetch({ after: this.last, limit: 200 })).filter((r) => +r.dataset.index > this.last);
      if (!items.length) return;
      this.keeping(() => {
        this.list.append(...items);
        this.onrows?.(items);
        this.drop(true);
      });
      this.last = +items.at(-1).dataset.index;
      if (!this.first) this.first = +items[0].dataset.index;
      if (!this.more) return;
    }
  }

  async refresh(row) {
    const n = +row.dataset.index;
    const [item] = await this.fetch({ after: n - 1, limit: 1 });
    if (!item || +item.dataset.index !== n) return;
    const open = [...row.querySelectorAll('details')].map((d) => d.open);
    this.keeping(() => {
      row.replaceWith(item);
      item.querySelectorAll('details').forEach((d, i) => { if (open[i] !== undefined) d.open = open[i]; });
      this.onrows?.([item]);
    });
  }

  // reload shows anew what is shown, after a rewind or when events were missed.
  reload() {
    if (!this.rendered) {
      location.reload();
      return this.queue;
    }
    return this.inOrder(() => this.replace(this.atEnd() ? { limit: pageSize } : { after: this.first - 1, limit: kept }));
  }

  async replace(query) {
    let items = await this.fetch(query);
    if (!items.length && query.after !== undefined) { // a rewind took all of them
      query = { limit: pageSize };
      items = await this.fetch(query);
    }
    this.keeping(() => {
      this.list.replaceChildren(...items);
      this.onrows?.(items);
    });
    this.end = !this.more;
    this.span();
  }

  // stored gives the text of a row as it is on disk; '' when it is not there yet.
  async stored(ts) {
    const window = await get(taskPath(this.task, '/messages?limit=20'));
    return window.items.find((m) => String(m.ts) === String(ts))?.text || '';
  }
}
