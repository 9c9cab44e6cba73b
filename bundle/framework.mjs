/**
 * Replaces two parts of what tsc has written to dist.
 *
 * dist/vendor: its modules export what we use of viem and mppx, and become bundles that contain it. Installed from npm
 * they and what they need take 100 MB, most of it declarations and second builds; the parts that run take three.
 *
 * dist/engine/catalog/shape-validator.js: becomes the code that ajv would generate at each start.
 */
import { readdirSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import standaloneCode from 'ajv/dist/standalone/index.js'
import { build, transform } from 'esbuild'
import { OPTIONS } from './esbuild-options.mjs'
import { describeBundle } from './packages.mjs'

const ROOT = join(import.meta.dirname, '..')
const DIST = join(ROOT, 'dist')
const VENDOR = join(DIST, 'vendor')

// The declarations are those of tsc.
for (const name of readdirSync(VENDOR)) if (!name.endsWith('.d.ts')) rmSync(join(VENDOR, name))
const { metafile } = await build({
  ...OPTIONS,
  external: [...OPTIONS.external, '@modelcontextprotocol/*'],
  entryPoints: readdirSync(join(ROOT, 'src/vendor')).map((name) => join(ROOT, 'src/vendor', name)),
  outdir: VENDOR,
})
describeBundle(metafile, { directory: VENDOR, manifest: 'package.json' })

const { shapeCompiler } = await import(join(DIST, 'engine/catalog/shape-compiler.js'))
const { catalogSchema } = await import(join(DIST, 'engine/catalog/schema.js'))
const validator = [
  "import { createRequire } from 'node:module'",
  'const require = createRequire(import.meta.url)',
  standaloneCode.default(shapeCompiler(), shapeCompiler().compile(catalogSchema)),
  'export const shapeValidator = () => validate',
]
const { code } = await transform(validator.join('\n'), { minifySyntax: true, minifyWhitespace: true })
writeFileSync(join(DIST, 'engine/catalog/shape-validator.js'), code)
