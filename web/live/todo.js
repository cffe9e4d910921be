// The to-do list of a task, beside its messages: the newest one that a message shows.

import { el } from './ui.js';

const states = { x: 'done', '-': 'doing', ' ': 'open' };

// todoOf reads the to-do list of a message; null when it shows none.
function todoOf(row) {
  if (!row.matches('.tool') || row.querySelector('header b')?.textContent !== 'tool todo') return null;
  const items = [];
  for (const line of (row.querySelector('pre')?.textContent || '').trim().split('\n')) {
    const m = /^\[([ x-])\] (.*)$/.exec(line);
    if (m) items.push({ state: states[m[1]], text: m[2] });
  }
  return items.length ? items : null;
}

// showTodo brings the list up to date from the messages.
export function showTodo(rows) {
  const items = rows.reduceRight((found, row) => found || todoOf(row), null);
  let box = document.getElementById('todo');
  if (!items) return box?.remove();
  if (!box) {
    box = el('details', { id: 'todo', open: true });
    const side = document.querySelector('.side form');
    if (side) side.after(box);
    else document.querySelector('main').prepend(box);
  }
  const words = { done: 'done: ', doing: 'in progress: ', open: '' };
  box.replaceChildren(
    el('summary', {}, 'To do ', el('span', { class: 'n' }, items.filter((i) => i.state === 'done').length + ' of ' + items.length)),
    el('ul', {}, items.map((i) => el('li', { class: i.state, dir: 'auto' }, el('span', { class: 'quiet' }, words[i.state]), i.text))));
}
