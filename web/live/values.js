// The values that exist are offered in the fields that narrow the list. They are asked for when a person goes there.

import { get } from './api.js';
import { el, quietly } from './ui.js';

const lists = { workspace: 'workspaces', model: 'models', tag: 'tags', tool: 'tools' };

export function offerValues(form) {
  let asked = false;
  form.addEventListener('focusin', async (e) => {
    if (asked || !(e.target.name in lists)) return;
    asked = true;
    try {
      const all = await get('/v1/filters');
      for (const [name, list] of Object.entries(lists)) {
        const id = 'values-' + name;
        form.append(el('datalist', { id }, all[list].map(({ value, tasks }) => el('option', { value, label: tasks + (tasks === 1 ? ' task' : ' tasks') }))));
        form.querySelector(`[name=${name}]`).setAttribute('list', id);
      }
    } catch (problem) {
      asked = false;
      quietly(problem);
    }
  });
}
