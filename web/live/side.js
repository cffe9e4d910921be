// What stands above and beside the messages of a task and follows what happens: its state and cost, the files that the model
// knows, and the subtasks. The server renders it, with a page that has no messages.

import { getHTML } from './api.js';
import { pageOf } from './fragment.js';
import { keepFocus, quietly } from './ui.js';

const parts = ['.taskhead .facts', '.side .known', '.side .subtasks'];
const calm = 1200; // milliseconds after an event
const beyond = 1_000_000_000; // behind every message

const shows = /^(file|checkpoint|subtask|run|history)\.|^tool\.finished|^task\.changed/;

export class Side {
  constructor(task, aside) {
    this.task = task;
    this.aside = aside;
  }

  // events looks whether something beside the messages changed. Of other tasks, those of the subtasks count.
  events(list) {
    const mine = this.task.split(':').at(-1);
    const below = new Set([...this.aside.querySelectorAll('.subtasks a')].map((a) => decodeURIComponent(a.pathname).split(/[/:]/).at(-1)));
    if (list.some(({ type, data }) => shows.test(type) && data.task_id === mine || /^(run|question)\./.test(type) && below.has(data.task_id))) this.later();
  }

  later() {
    this.timer ||= setTimeout(() => {
      this.timer = 0;
      this.refresh().catch(quietly);
    }, calm);
  }

  async refresh() {
    const page = pageOf(await getHTML(`/tasks/${encodeURIComponent(this.task)}?after=${beyond}`));
    for (const name of parts) {
      const now = document.querySelector(name), fresh = page.querySelector(name);
      if (!fresh) {
        now?.remove();
        continue;
      }
      const next = document.importNode(fresh, true);
      if (now) {
        if (now.outerHTML === next.outerHTML) continue;
        next.open = now.open;
        keepFocus(now, () => now.replaceWith(next), () => next);
      } else {
        this.aside.querySelector('.about').before(next);
      }
    }
  }
}
