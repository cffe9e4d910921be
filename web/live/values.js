// The values that exist are offered in the fields that narrow the list. They are asked for when a person goes there.

import { get } from './api.js';
import { el, quietly } from './ui.js';

const lists = { workspace: 'workspaces', model: 'models', tag: 'tags', tool: 'tools' };

export function offerValues(form) {
  const known = new Set();
  form.addEventListener('focusin', async ({ target: { name } }) => {
    if (known.has(name) || !(name in lists)) return;
    known.add(name);
    try {
      const all = await get('/v1/filters' + (name === 'tool' ? '?called=true' : ''));
      const id = 'values-' + name;
      form.append(el('datalist', { id }, all[lists[name]].map(({ value, tasks }) => el('option', { value, label: tasks + (tasks === 1 ? ' task' : ' tasks') }))));
      form.querySelector(`[name=${name}]`).setAttribute('list', id);
    } catch (problem) {
      known.delete(name);
      quietly(problem);
    }
  });
}
