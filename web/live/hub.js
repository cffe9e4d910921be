// A Hub gives the events of one stream to any number of pages, each behind its own cursor. It keeps the newest events for
// a page that opens a moment behind the stream; for an older cursor the stream begins again there, and pages drop what
// they had.

import { orderly, reached } from './cursor.js';
import { Stream } from './stream.js';

const kept = 1000; // events

export class Hub {
  constructor() {
    this.pages = new Map(); // by id: {post, task}
    this.ring = [];
    this.from = null; // the cursor before the first event in the ring; null: not known
    this.state = { live: false, why: 'starting' };
    this.stream = new Stream((batch) => this.take(batch), (state) => this.tell(state));
  }

  // join adds a page: post sends it a message; cursor is what it has seen, '' for what comes from now on; task is the one
  // whose streamed text it wants.
  join(id, { cursor, task }, post) {
    const page = { post, task };
    this.pages.set(id, page);
    post({ state: this.state });
    if (!this.stream.running) {
      this.from = cursor || null;
      this.stream.start(cursor);
      return;
    }
    this.wake(); // the server has just answered the page, maybe after a new log-in
    if (!cursor) return;
    if (this.from && orderly(this.from, cursor) && reached(this.from, cursor)) {
      this.send(page, this.ring.filter((e) => !reached(e.id, cursor)));
    } else if (!this.stream.cursor || !reached(this.stream.cursor, cursor)) {
      this.ring = [];
      this.from = cursor;
      this.stream.start(cursor);
    }
  }

  // handle does what a page asks for.
  handle(id, { join, leave, wake }, post) {
    if (join) this.join(id, join, post);
    if (leave) this.leave(id);
    if (wake) this.wake();
  }

  leave(id) {
    this.pages.delete(id);
    if (!this.pages.size) this.close();
  }

  close() {
    this.pages.clear();
    this.stream.stop();
    this.ring = [];
    this.from = null;
    this.state = { live: false, why: 'starting' };
  }

  wake() {
    this.stream.wake();
  }

  tell(state) {
    if (state.live === this.state.live && state.why === this.state.why) return;
    this.state = state;
    for (const page of this.pages.values()) page.post({ state });
  }

  take(batch) {
    const events = batch.map(light);
    for (const page of this.pages.values()) this.send(page, events);
    for (const e of events) {
      if (e.type === 'stream.snapshot') {
        this.ring = [];
        this.from = e.id || null;
      } else if (e.id && e.type) {
        this.ring.push(e);
      } else if (e.id && !this.from) {
        this.from = e.id;
      }
    }
    while (this.ring.length > kept) this.from = this.ring.shift().id;
  }

  // send gives a page what it needs: the events of its task, what lists show of others, all that brings or takes
  // questions, and where the stream is. A task's page also shows the states of subtasks.
  send(page, events) {
    const others = page.task ? /^(run|question|history)\.|^task\.(deleted|changed)$/ : /(?<!\.delta)$/;
    const wanted = events.filter((e) => e.type.startsWith('stream.') || (page.task && e.data.task_id === page.task) || others.test(e.type));
    const at = events.findLast((e) => e.id)?.id;
    if (wanted.length || at) page.post({ events: wanted, at });
  }
}

// light reads an event, and leaves out what a message holds: pages ask for messages as fragments. What is long would be
// copied for every page.
function light({ id, type, data }) {
  let d = {};
  try { d = JSON.parse(data || '{}'); } catch { /* nothing of it is known */ }
  if (d.content) d.content = { partial: d.content.partial === true, kind: d.content.ask || d.content.say || '' };
  if (type === 'tool.finished') delete d.result;
  if (type === 'message.text_saved' || type === 'file.changed') d = { type, task_id: d.task_id, message: d.message };
  if (type === 'stream.snapshot') d = {};
  return { id, type, data: d };
}
