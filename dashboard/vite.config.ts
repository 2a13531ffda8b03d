// Says how Vite bundles the pages. The server serves the result at /dashboard/, and replaces `__CSP_NONCE__` by a new value
// in each answer.
import react from '@vitejs/plugin-react'
import { defineConfig } from 'vite'

export default defineConfig({
  base: '/dashboard/',
  plugins: [react()],
  html: { cspNonce: '__CSP_NONCE__' },
  build: {
    target: 'es2023',
    // No file becomes a `data:` address: the content security policy forbids those for scripts and fonts.
    assetsInlineLimit: 0,
    modulePreload: { polyfill: false },
    // Writes a list of the bundle's files, which budgets.test.ts reads.
    manifest: 'manifest.json',
  },
})
