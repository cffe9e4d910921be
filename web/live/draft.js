// What a person has begun to write: the server keeps it, so that a reload, a restart and another device find it. The
// browser keeps a copy, which counts until the server has it. When the draft was changed elsewhere meanwhile, both texts
// stay until the person chooses.

import { act, get, taskPath } from './api.js';
import { store, stored } from './storage.js';
import { quietly } from './ui.js';

const calm = 700; // milliseconds after a key, before the server gets the draft

// draftPath is the address of the draft of a task; '' is the task that does not exist yet.
const draftPath = (task, rest = '') => (task ? taskPath(task, '/draft') : '/v1/draft') + rest;

const joined = (text, more) => [text.trimEnd(), more].filter(Boolean).join('\n\n');

const open = new Map(); // the drafts that the page shows, by task

// The keys of the drafts that this browser has sent last, the newest at the end. Another tab may have the same words, and
// tell the browser or the server so at the moment of the sending: such a copy is no draft any more.
const sentSlot = 'roost-sent', sentMost = 50;

const wasSent = (key) => Boolean(key) && stored(sentSlot, []).includes(key);

// appendToDraft puts text behind what the person has begun to write to a task. It resolves when the server has it.
export async function appendToDraft(task, text) {
  if (open.has(task)) return open.get(task).append(text);
  for (let tries = 1; ; tries++) {
    const d = await get(draftPath(task));
    try {
      await act('PUT', draftPath(task), { text: joined(d.text, text), images: d.images.map((i) => i.name), key: crypto.randomUUID(), base: d.revision });
      return;
    } catch (problem) {
      if (problem.code !== 'draft_moved' || tries === 5) throw problem;
    }
  }
}

// A Draft is shown by one field; onchange is called when it has become another one by itself.
export class Draft {
  constructor(task, onchange) {
    Object.assign(this, { task, onchange, slot: 'roost-draft-' + task, changes: 0, other: null });
    this.take(stored(this.slot, {}));
    open.set(task, this);
    this.leave = new AbortController();
    const on = (target, type, act) => target.addEventListener(type, act, { signal: this.leave.signal });
    on(window, 'storage', (e) => { // the same draft in another tab
      const gone = wasSent(this.key), copy = stored(this.slot, {});
      if (e.key !== this.slot && !(e.key === sentSlot && gone)) return;
      if ((!e.newValue || wasSent(copy.key)) && !gone && this.dirty && this.text) return this.store(); // these words are newer than what was sent
      if (!e.newValue && !gone && this.text) return this.load().then(() => this.store(), () => {}); // the server knows whether these words are newer
      this.take({ ...gone && { base: this.base, dirty: true }, ...copy });
      this.changed();
    });
    on(window, 'focus', () => this.load().catch(() => {})); // the copy is shown meanwhile
    on(window, 'pagehide', () => { this.leaving = true; this.save().catch(() => {}); });
    on(window, 'pageshow', () => { this.leaving = false; });
    on(document, 'visibilitychange', () => (document.hidden ? this.save() : this.load()).catch(() => {}));
  }

  close() {
    this.leave.abort();
    if (open.get(this.task) === this) open.delete(this.task);
    return this.save();
  }

  // changed is called when the draft has become another one by itself.
  changed() {
    this.changes++;
    this.onchange();
    if (this.dirty && !this.key) this.save().catch(() => {}); // the server may have words that were sent
  }

  // take makes the draft that of the copy or the server. base is the revision on the server that it was written over;
  // dirty: the server does not have it. seen are the keys of drafts that it was made of: where the server has one of those
  // although it is not known here, an answer was lost, or another tab was faster. An image is its name, or a data URL until
  // the server has it. Of words that were sent only the base stays.
  take({ text = '', images = [], key = '', base = '', dirty = Boolean(text), attempt = null, seen = [] }) {
    if (wasSent(key)) return this.take({ base, dirty: true, seen: [...seen, key] });
    Object.assign(this, { text, images, key, base, dirty, attempt, seen: [...seen, key].filter(Boolean).slice(-5) });
  }

  adopt(d) {
    this.take({ text: d.text, images: d.images.map((i) => i.name), key: d.key, base: d.revision, dirty: false });
    this.other = null;
    this.store();
    this.onchange();
  }

  store() {
    const { text, images, key, base, dirty, attempt, seen } = this;
    store(this.slot, dirty || base ? { text, images, key, base, dirty, attempt, seen } : undefined);
  }

  // set changes the draft. Other words get another key: those that are sent again after a broken connection are taken once.
  set({ text = this.text, images = this.images }, wait = calm) {
    if (text === this.text && images === this.images) return;
    Object.assign(this, { text, images, key: text || images.length ? crypto.randomUUID() : '', dirty: true });
    this.changes++;
    this.store();
    clearTimeout(this.timer);
    this.timer = setTimeout(() => this.save().catch(quietly), wait);
  }

  append(text) {
    this.set({ text: joined(this.text, text) });
    this.onchange();
    return this.save();
  }

  // save gives the server what it lacks, load reads what it has: one after the other.
  save() {
    clearTimeout(this.timer);
    return this.after(() => this.put());
  }

  load() {
    return this.after(() => this.read());
  }

  after(next) {
    return this.last = (this.last || Promise.resolve()).catch(() => {}).then(next);
  }

  async put() {
    if (!this.dirty || this.other) return;
    const at = this.changes;
    if (this.key) this.seen = [...this.seen.slice(-4), this.key];
    this.store();
    let d;
    try {
      const body = { text: this.text, images: this.images, key: this.key, base: this.base };
      d = await act('PUT', draftPath(this.task), body, '', { keepalive: this.leaving && JSON.stringify(body).length < 60000 });
    } catch (problem) {
      if (problem.code !== 'draft_moved') throw problem;
      if (this.meet(await get(draftPath(this.task)))) await this.put();
      return;
    }
    const moved = at !== this.changes && !this.dirty && this.base !== d.revision; // another tab's words took the place of these
    this.base = d.revision;
    if (at === this.changes) Object.assign(this, { dirty: false, images: d.images.map((i) => i.name) });
    if (at === this.changes && wasSent(this.key)) this.take(this); // another tab has sent them
    if (moved) this.dirty = true;
    this.store();
    if (at === this.changes) this.onchange();
    if (moved || !this.key) await this.put();
  }

  async read() {
    const d = await get(draftPath(this.task));
    if (this.other) {
      if (d.revision !== this.other.revision) this.meet(d);
    } else if (this.dirty) {
      if (this.meet(d)) await this.put();
    } else if (d.revision !== this.base) {
      this.adopt(d);
      await this.put(); // nothing, unless these words were sent
    }
  }

  // meet compares the draft here, which the server does not have, with the one there, and reports whether the one here can
  // replace that.
  meet(d) {
    const here = this.text || this.images.length;
    if (d.revision === this.base) return true;
    if (!d.revision || wasSent(d.key) || this.seen.includes(d.key)) { // it was sent or removed elsewhere, or what is here follows it
      this.base = d.revision;
      this.other = null;
      return true;
    }
    if (!here || d.text === this.text && d.images.map((i) => i.name).join() === this.images.join()) {
      this.adopt(d);
      return false;
    }
    this.other = d;
    this.onchange();
    return false;
  }

  // choose ends that there are two: 'here', 'there' or 'both'.
  choose(which) {
    const there = this.other;
    if (which === 'there') return this.adopt(there);
    this.other = null;
    this.base = there.revision;
    if (which === 'both') this.set({ text: joined(there.text, this.text), images: [...new Set([...there.images.map((i) => i.name), ...this.images])] });
    this.changes++;
    this.onchange();
    return this.save();
  }

  // toSend is what a message is made of, and its delivery. The server has the draft then, unless it cannot be reached or
  // there are two. A request that is sent again under its key is the same one.
  async toSend(delivery) {
    if (this.attempt?.key === this.key) return this.attempt;
    const { text, key } = this;
    let { images } = this;
    await this.save().catch((e) => { if (images.length || e.code !== 'unreachable') throw e; });
    const same = this.key === key; // else another tab has begun other words, and these are sent all the same
    if (same) images = this.images;
    this.attempt = { words: { text: text.trim(), images: images.length ? images : undefined, draft: same && !this.dirty && this.base || undefined }, key, delivery };
    this.store();
    return this.attempt;
  }

  // taken is called when the message was taken, and the draft with it, as far as the server had it. Words that another tab
  // has begun since stay.
  taken({ words, key }) {
    store(sentSlot, [...stored(sentSlot, []), key].slice(-sentMost));
    if (this.other) return this.adopt(this.other);
    const now = stored(this.slot, {});
    if (now.key && now.key !== this.key) this.take(now);
    const gone = words.draft && words.draft === this.base, base = gone ? '' : this.base;
    if (this.key === key) this.take({ base, dirty: !gone && Boolean(this.base) });
    else Object.assign(this, { base, dirty: true });
    this.changes++;
    this.store();
    this.onchange();
    if (this.dirty) this.save().catch(() => {});
  }

  image(name) {
    return name.startsWith('data:') ? name : draftPath(this.task, '/images/' + name);
  }
}

