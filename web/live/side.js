// What stands above and beside the messages of a task and follows what happens: its state and cost, to-do list,
// prompts, files, subtasks, branches and details. The server renders it, with a page that has no messages.

import { getHTML } from './api.js';
import { pageOf } from './fragment.js';
import { keepFocus, quietly } from './ui.js';

const parts = '.taskhead .facts, .side > details';
const calm = 1200; // milliseconds after an event
const beyond = 1_000_000_000; // behind every message

const shows = /^(file|checkpoint|subtask|run|history|input|question)\.|^(tool\.finished|turn\.ended|task\.changed)/;

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
      this.refresh().catch((e) => e.status === 404 || quietly(e)); // that a task is deleted is said by its event
    }, calm);
  }

  async refresh() {
    const page = pageOf(await getHTML(`/tasks/${encodeURIComponent(this.task)}?after=${beyond}`));
    const shown = [...document.querySelectorAll(parts)], fresh = [...page.querySelectorAll(parts)];
    for (const e of shown) if (!fresh.some((f) => f.className === e.className)) e.remove();
    let behind;
    for (const one of fresh.toReversed()) {
      const now = shown.find((e) => e.className === one.className), next = document.importNode(one, true);
      if (!now) behind.before(next); // the last ones are always there
      else if (now.innerHTML !== next.innerHTML) {
        next.open = now.open;
        const { scrollTop: top = 0, scrollLeft: left = 0 } = now.querySelector('ol') || {};
        keepFocus(now, () => now.replaceWith(next), () => next);
        next.querySelector('ol')?.scrollTo({ top, left });
      }
      behind = next.isConnected ? next : now;
    }
  }
}
