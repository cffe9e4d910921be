// Completing what is typed: a list of what may be meant, by the pattern of a combobox. The focus stays in the field. What
// is taken goes into the field as text; nothing runs by that.

import { get, taskPath } from './api.js';
import { el } from './ui.js';

const calm = 60; // milliseconds after a key
let made = 0;

// offers asks the server for words of a kind: of a task, or of a folder before there is a task.
export async function offers(task, kind, text, signal, folder = '') {
  const q = new URLSearchParams({ kind, text });
  if (!task && folder) q.set('workspace', folder);
  const { items } = await get((task ? taskPath(task, '/completions') : '/v1/completions') + '?' + q, { signal });
  return items.map((i) => ({ ...i, about: [i.about, i.from === 'project' && 'from the project'].filter(Boolean).join(' · ') }));
}

// A Complete belongs to one field. find(head, signal) gives what may be meant by the end of the text before the cursor:
// {from, items}, or null; an item has text, about and, when it is more than text for the field, pick. list is where it
// shows. enter is called for an Enter that waited for a list which came empty.
export class Complete {
  constructor(field, { find, enter = () => {}, always = false }) {
    Object.assign(this, { field, find, enter, items: [], at: -1, shut: -1 });
    this.list = el('ul', { id: 'offers-' + ++made, class: 'offers', role: 'listbox', 'aria-label': 'What may be meant', hidden: true });
    this.said = el('span', { class: 'quiet', role: 'status' });
    field.setAttribute('aria-autocomplete', 'list');
    field.setAttribute('autocomplete', 'off');
    field.addEventListener('input', () => this.look());
    field.addEventListener('blur', () => this.close());
    if (always) field.addEventListener('focus', () => this.look());
    this.list.addEventListener('pointerdown', (e) => e.preventDefault()); // the field keeps the focus
    this.list.addEventListener('click', (e) => {
      const one = e.target.closest('[role=option]');
      if (one) this.take(+one.dataset.at);
    });
    field.addEventListener('keydown', (e) => {
      if (this.key(e)) { e.preventDefault(); e.stopImmediatePropagation(); }
    });
  }

  // look looks for what may be meant, once the person has stopped typing for a moment.
  look() {
    clearTimeout(this.timer);
    this.abort?.abort();
    const abort = this.abort = new AbortController();
    this.due = '';
    this.waits = true;
    this.timer = setTimeout(async () => {
      let found = null;
      try {
        found = await this.find(this.field.value.slice(0, this.field.selectionStart), abort.signal);
      } catch { /* completion says no error */ }
      if (abort.signal.aborted) return;
      this.waits = false;
      this.show(found);
    }, calm);
  }

  show(found) {
    const typed = found && this.field.value.slice(found.from, this.field.selectionStart);
    if (!found || found.from !== this.shut) this.shut = -1;
    const due = this.due;
    if (!found || found.from === this.shut || !found.items.length || found.items.length === 1 && found.items[0].text === typed || document.activeElement !== this.field) {
      this.close();
      if (due === 'Enter') this.enter();
      return;
    }
    this.items = found.items;
    this.from = found.from;
    this.list.replaceChildren(...found.items.map((item, n) => el('li', { id: this.list.id + '-' + n, role: 'option', 'data-at': n, 'aria-selected': 'false' },
      el('span', { class: 'word', dir: 'auto' }, item.text), item.about && el('span', { class: 'about', dir: 'auto' }, item.about))));
    this.list.hidden = false;
    this.field.setAttribute('role', 'combobox');
    this.field.setAttribute('aria-controls', this.list.id);
    this.field.setAttribute('aria-expanded', 'true');
    this.said.textContent = found.items.length + ' may be meant. ';
    this.choose(found.plain ? -1 : 0);
    if (due) this.take(Math.max(this.at, 0));
  }

  choose(n) {
    this.list.children[this.at]?.setAttribute('aria-selected', 'false');
    this.at = n;
    const one = this.list.children[n];
    if (!one) return this.field.removeAttribute('aria-activedescendant');
    one.setAttribute('aria-selected', 'true');
    one.scrollIntoView({ block: 'nearest' });
    this.field.setAttribute('aria-activedescendant', one.id);
  }

  close() {
    clearTimeout(this.timer);
    this.abort?.abort();
    this.waits = false;
    this.due = '';
    this.items = [];
    this.at = -1;
    this.list.hidden = true;
    this.list.replaceChildren();
    this.said.textContent = '';
    for (const name of ['role', 'aria-controls', 'aria-expanded', 'aria-activedescendant']) this.field.removeAttribute(name);
  }

  // key handles a key, and reports whether that was all. Enter leaves a word alone that was typed whole.
  key(e) {
    if (e.isComposing || e.ctrlKey || e.metaKey || e.altKey || e.shiftKey) return false;
    const open = !this.list.hidden, n = this.items.length;
    const typed = open && this.field.value.slice(this.from, this.field.selectionStart);
    switch (e.key) {
      case 'ArrowDown': case 'ArrowUp':
        if (open) this.choose((this.at + (e.key === 'ArrowDown' ? 1 : this.at < 0 ? 0 : -1) + n) % n);
        return open;
      case 'Enter': case 'Tab':
        if (this.waits && open) { this.due = e.key; return true; } // the list is for what was typed before
        if (!open || this.at < 0 || e.key === 'Enter' && this.items[this.at].text === typed) { this.close(); return false; }
        this.take(this.at);
        return true;
      case 'Escape':
        if (!open) return false;
        this.shut = this.from;
        this.close();
        return true;
    }
    return false;
  }

  // take puts a word into the field, with a blank behind it unless it is a folder, whose content is offered next.
  take(n) {
    const item = this.items[n], from = this.from;
    if (!item) return;
    const more = item.text.endsWith('/');
    this.close();
    this.field.focus();
    this.field.setRangeText(item.text + (more || this.field.tagName === 'INPUT' ? '' : ' '), from, this.field.selectionStart, 'end');
    this.field.dispatchEvent(new Event('input', { bubbles: true }));
    if (!more) this.close();
    item.pick?.();
  }
}

// combobox makes an input whose whole value is completed.
export function combobox(properties, find, pick) {
  const input = el('input', { ...properties, autocapitalize: 'off', spellcheck: 'false' });
  const complete = new Complete(input, {
    always: true,
    find: async (head, signal) => ({ from: 0, plain: true, items: (await find(head, signal)).map((i) => ({ ...i, pick: pick && (() => pick(i)) })) }),
  });
  return el('span', { class: 'combobox' }, input, complete.said, complete.list);
}
