// xterm.js adds style elements and sets `style` attributes. The content security policy allows style elements with the
// page's nonce only, and no `style` attributes. So xterm.js gets a document whose elements do the same in allowed ways.
import { cspNonce } from '../../../csp-nonce.ts'

/** Gives style elements their nonce before they come into the page. */
function appendChildAllowed<T extends Node>(this: Node, child: T): T {
  if (child instanceof HTMLStyleElement && cspNonce !== undefined) child.nonce = cspNonce
  return Node.prototype.appendChild.call(this, child) as T
}

/** Sets the attribute `style` as a property, which the policy allows. */
function setAttributeAllowed(this: HTMLElement, name: string, value: string): void {
  if (name === 'style') this.style.cssText = value
  else Element.prototype.setAttribute.call(this, name, value)
}

/** For the option `documentOverride` of xterm.js. */
export const allowedDocument = (): Document => {
  // The cells of xterm.js come from the page's own document, whatever the option says.
  HTMLSpanElement.prototype.setAttribute = setAttributeAllowed
  return new Proxy(document, {
    get: (target, key) => {
      if (key === 'createElement')
        return (name: string, options?: ElementCreationOptions) =>
          Object.assign(target.createElement(name, options), { appendChild: appendChildAllowed })
      const value: unknown = Reflect.get(target, key, target)
      return typeof value === 'function' ? value.bind(target) : value
    },
    set: (target, key, value) => Reflect.set(target, key, value, target),
  })
}
