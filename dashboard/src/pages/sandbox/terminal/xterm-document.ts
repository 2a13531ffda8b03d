// The content security policy forbids the attribute `style`. A style element must have the page's nonce. So xterm.js gets a changed
// `document`, which sets styles only as the policy allows.
import { cspNonce } from '../../../csp-nonce.ts'

/** Replaces the DOM method `appendChild`: gives a style element the page's nonce before it is added. */
function appendChildAllowed<T extends Node>(this: Node, child: T): T {
  if (child instanceof HTMLStyleElement && cspNonce !== undefined) child.nonce = cspNonce
  return Node.prototype.appendChild.call(this, child) as T
}

/**
 * Replaces the DOM method `setAttribute`: sets the attribute `style` through the property `style.cssText`, which the content
 * security policy allows.
 */
function setAttributeAllowed(this: HTMLElement, name: string, value: string): void {
  if (name === 'style') this.style.cssText = value
  else Element.prototype.setAttribute.call(this, name, value)
}

/**
 * Returns a document for xterm.js (option `documentOverride`). Its elements set styles only as the content security policy allows.
 */
export const allowedDocument = (): Document => {
  // Despite `documentOverride`, xterm.js makes its `span` elements with the page's own document. The content security policy
  // forbids their attribute `style`, so `setAttribute` is changed for all spans of the page.
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
