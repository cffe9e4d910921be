// Subtasks in the list of tasks fold under the task above them.

import { button } from './ui.js';

const depth = (row) => +(/\bd(\d)\b/.exec(row.className)?.[1] || 0);

export class Tree {
  constructor(main) {
    this.main = main;
    this.folded = new Set();
    this.adorn();
  }

  // adorn gives each row that has others below it a button, and hides what is folded.
  adorn() {
    const rows = [...this.main.querySelectorAll('.row[data-task]')];
    let under = Infinity; // the depth of the folded row that the next ones lie below
    for (const [i, row] of rows.entries()) {
      const at = depth(row);
      if (at <= under) under = Infinity;
      row.hidden = under !== Infinity;
      const below = rows[i + 1] && depth(rows[i + 1]) > at;
      if (!below) continue;
      const folded = this.folded.has(row.dataset.task);
      if (folded) under = Math.min(under, at);
      let b = row.querySelector('button.fold');
      if (!b) {
        const count = row.querySelector('.below');
        b = button('', () => this.toggle(row), { class: 'fold' });
        b.append(count?.textContent || 'Subtasks');
        if (count) count.replaceWith(b);
        else row.querySelector('.c-title').append(b);
      }
      b.setAttribute('aria-expanded', !folded);
    }
  }

  toggle(row) {
    if (!row?.querySelector('button.fold')) return false;
    const task = row.dataset.task;
    if (!this.folded.delete(task)) this.folded.add(task);
    this.adorn();
  }
}
