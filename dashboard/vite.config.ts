// How the pages are bundled. The server replaces `__CSP_NONCE__` by a new value in each answer, and serves the result
// at /dashboard/.
import react from '@vitejs/plugin-react'
import { defineConfig } from 'vite'

export default defineConfig({
  base: '/dashboard/',
  plugins: [react()],
  html: { cspNonce: '__CSP_NONCE__' },
  build: {
    target: 'es2023',
    // The content security policy allows no `data:` scripts or fonts.
    assetsInlineLimit: 0,
    modulePreload: { polyfill: false },
    // Says which file has what, for the test of sizes.
    manifest: 'manifest.json',
  },
})
