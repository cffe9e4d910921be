// The page of the devices that are logged in: they can be renamed and logged out.

import { act } from './api.js';
import { button, dialog, el, field, note, tried } from './ui.js';

export class Devices {
  constructor(main) {
    for (const row of main.querySelectorAll('[data-device]')) {
      const name = row.querySelector('.titletext'), how = row.querySelector('.how');
      how.replaceWith(el('div', { class: 'acts' },
        button('Rename', tried(() => this.rename(row, name)), { 'data-does': 'rename', 'aria-label': 'Rename ' + name.textContent }),
        button('Log out', tried(() => this.revoke(row, name)), { 'data-does': 'revoke', class: 'danger', 'aria-label': 'Log out ' + name.textContent })));
    }
  }

  async rename(row, name) {
    const d = await dialog('Rename the device', field('Name', el('input', { name: 'name', value: name.textContent, maxlength: 60, required: true, autofocus: true })), { does: 'Rename' });
    if (!d) return;
    const done = await act('PATCH', '/v1/devices/' + row.dataset.device, { name: d.data.get('name') });
    name.textContent = done.name;
  }

  async revoke(row, name) {
    const own = 'current' in row.dataset;
    const d = await dialog('Log it out?', el('p', {}, own ? 'This is the browser that you use now. It will need a new link.' : `“${name.textContent}” will be out at once, and its open pages will stop.`),
      { does: 'Log out', danger: true });
    if (!d) return;
    await act('DELETE', '/v1/devices/' + row.dataset.device);
    if (own) {
      location.href = '/';
      return;
    }
    row.remove();
    note(`“${name.textContent}” is logged out.`);
  }
}
