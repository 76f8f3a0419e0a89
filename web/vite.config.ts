/**
 * Builds the page into `dist/`, each file also compressed: the platform reads them once and compresses nothing itself.
 * `scripts/build-page.mjs` runs it and names another folder with `--outDir`.
 */
import { globSync, readFileSync, writeFileSync } from 'node:fs'
import { brotliCompressSync, gzipSync } from 'node:zlib'
import tailwind from '@tailwindcss/vite'
import react from '@vitejs/plugin-react'
import { defineConfig, type Plugin } from 'vite'

const compress: Plugin = {
  name: 'molecule-compress',
  apply: 'build',
  writeBundle({ dir = 'dist' }) {
    for (const path of globSync('**/*.{html,js,css,svg}', { cwd: dir })) {
      const bytes = readFileSync(`${dir}/${path}`)
      writeFileSync(`${dir}/${path}.br`, brotliCompressSync(bytes))
      writeFileSync(`${dir}/${path}.gz`, gzipSync(bytes, { level: 9 }))
    }
  },
}

export default defineConfig({
  plugins: [react(), tailwind(), compress],
  build: {
    target: 'es2023',
    assetsDir: 'assets',
    // The policy of the page allows no inline data.
    assetsInlineLimit: 0,
    modulePreload: { polyfill: false },
    reportCompressedSize: false,
  },
})
