// The one place where text of the server becomes elements. The server has rendered and sanitised it; the policy of the
// page lets no script, no handler and no style of it do anything.

const policy = self.trustedTypes?.createPolicy('roost', {
  createHTML: (text) => text,
  createScriptURL: (address) => {
    if (!['/static/worker.js', '/static/sw.js'].includes(address)) throw new TypeError(address + ' is no script of the page');
    return address;
  },
}) || { createHTML: (text) => text, createScriptURL: (address) => address };

export const scriptAddress = (address) => policy.createScriptURL(address);

// fragment gives the elements of a fragment that the server rendered.
export function fragment(text) {
  const template = document.createElement('template');
  template.innerHTML = policy.createHTML(text);
  return document.adoptNode(template.content);
}

// pageOf gives the document of a whole page that the server rendered.
export const pageOf = (text) => new DOMParser().parseFromString(policy.createHTML(text), 'text/html');
