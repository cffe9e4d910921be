// What is under way in a task: text as the model writes it, tools that run and what they print. Text is shown plain, and
// makes room for the rendered message once that is there. Pieces have a place in their message, so none is lost or shown
// twice; what is missing after a break comes from the disk.

import { el, marked } from './ui.js';

const blockBytes = 4000; // long text is many small blocks: the browser lays out only the last one anew

const encoder = new TextEncoder(), decoder = new TextDecoder();

class Text {
  constructor(ts, kind) {
    this.ts = String(ts);
    this.at = 0; // bytes that are shown
    this.ahead = new Map(); // pieces behind a gap, by their place
    this.buffer = '';
    this.body = el('div', { class: 'body' });
    this.node = el('article', { class: 'streaming ' + kind, 'data-ts': ts }, el('h3', {}, kind === 'reasoning' ? 'Thinking' : kind === 'output' ? 'Output' : 'Writing'), this.body);
  }

  // piece takes text at a place, and reports whether text before it is missing.
  piece(offset, text) {
    let bytes = encoder.encode(text);
    if (offset > this.at) {
      this.ahead.set(offset, text);
      return true;
    }
    if (offset < this.at) {
      if (offset + bytes.length <= this.at) return false;
      bytes = bytes.subarray(this.at - offset);
      text = decoder.decode(bytes);
    }
    this.buffer += marked(text);
    this.at += bytes.length;
    for (const [place, next] of this.ahead) {
      if (place > this.at) continue;
      this.ahead.delete(place);
      this.piece(place, next);
    }
    return this.ahead.size > 0;
  }

  paint() {
    if (!this.buffer) return;
    let block = this.body.lastChild;
    if (!block || block.textContent.length > blockBytes && this.buffer.includes('\n')) {
      const end = block ? this.buffer.indexOf('\n') + 1 : 0;
      if (end) block.append(this.buffer.slice(0, end));
      this.buffer = this.buffer.slice(end);
      block = this.body.appendChild(el('div'));
    }
    if (block.lastChild?.nodeType === Node.TEXT_NODE) block.lastChild.appendData(this.buffer);
    else block.append(this.buffer);
    this.buffer = '';
  }
}

export class Streaming {
  constructor(section, messages) {
    this.section = section;
    this.messages = messages;
    this.texts = new Map(); // by ts
    this.tools = new Map(); // by call
    this.ended = new Set(); // ts of messages whose last form is there or on its way
    this.doing = '';
    messages.hides = (ts) => this.texts.has(String(ts));
    messages.onrows = (rows) => {
      for (const row of rows) if (this.ended.has(row.dataset.ts)) this.drop(row.dataset.ts);
    };
  }

  delta(type, d) {
    if (type === 'wait.delta') return this.says('Waits to try again: ' + d.text);
    if (type === 'tool.delta') return this.says('Writes a call of a tool …');
    const ts = String(d.ts);
    if (this.ended.has(ts)) return;
    let text = this.texts.get(ts);
    if (!text) {
      text = new Text(ts, type === 'reasoning.delta' ? 'reasoning' : d.call ? 'output' : 'text');
      this.texts.set(ts, text);
      this.messages.keeping(() => {
        const row = this.messages.byTime(ts);
        if (row) row.hidden = true; // the server rendered what was there of it
        this.section.append(text.node);
      });
    }
    this.says('');
    if (text.piece(d.offset || 0, d.text)) this.fill(text);
    this.paintSoon();
  }

  // fill gets what is missing before a piece from the disk.
  fill(text) {
    if (text.filling) return;
    text.filling = true;
    this.messages.stored(text.ts).then((stored) => {
      text.filling = false;
      text.piece(0, stored);
      this.paintSoon();
    }, () => { text.filling = false; });
  }

  // saved is called when a piece of a message is on disk.
  saved() {
    for (const text of this.texts.values()) if (text.ahead.size) this.fill(text);
  }

  // message is called for each message that was added or changed; partial: more of it will come.
  message(ts, partial) {
    if (!partial && this.texts.has(String(ts))) this.ended.add(String(ts));
  }

  drop(ts) {
    this.ended.delete(ts);
    const text = this.texts.get(ts);
    this.texts.delete(ts);
    text?.node.remove();
    const row = this.messages.byTime(ts);
    if (row) row.hidden = false;
  }

  tool(d) {
    this.tools.set(d.call, d);
    this.says('');
  }

  toolEnded(d) {
    const started = this.tools.get(d.call);
    this.tools.delete(d.call);
    this.says('');
    return started;
  }

  // end is called when a run ended, or events were missed: nothing is under way. What was shown of a message stays until
  // the message is there.
  end() {
    for (const ts of this.texts.keys()) {
      this.ended.add(ts);
      this.messages.note({ ts });
    }
    this.tools.clear();
    this.says('');
    this.messages.inOrder(() => { for (const ts of [...this.ended]) this.drop(ts); });
  }

  says(text) {
    const names = [...this.tools.values()].map((t) => t.name);
    this.doing = text || (names.length ? 'Runs ' + names.join(', ') : this.texts.size ? 'Writes' : '');
    this.ondoing?.();
  }

  paintSoon() {
    if (this.painting) return;
    this.painting = true;
    requestAnimationFrame(() => {
      this.painting = false;
      const atEnd = this.messages.atEnd();
      for (const text of this.texts.values()) text.paint();
      if (atEnd) this.messages.toEnd();
    });
  }
}
