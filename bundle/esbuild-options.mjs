import { join } from 'node:path'

/** What all bundles have in common. */
export const OPTIONS = {
  // Packages in CommonJS ask for modules of Node.js.
  banner: {
    js: "import { createRequire as bundleRequire } from 'node:module'; const require = bundleRequire(import.meta.url)",
  },
  // Imports of mppx for frameworks that are not used here.
  external: ['@x402/*', 'elysia', 'express', 'hono', 'hono/*', 'next', 'next/*'],
  bundle: true,
  splitting: true,
  format: 'esm',
  platform: 'node',
  target: 'node20',
  minifySyntax: true,
  minifyWhitespace: true,
  legalComments: 'none',
  metafile: true,
  absWorkingDir: join(import.meta.dirname, '..'),
  logLevel: 'warning',
}
