/**
 * Finishes what tsc has written to dist.
 *
 * Puts viem and mppx into dist/vendor and makes dist import them from there. Installed from npm they and what they need
 * take 100 MB, most of it declarations and second builds; the parts that run take three.
 *
 * Writes the validator of catalogs as code, which ajv would generate at each start otherwise.
 */
import { existsSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { dirname, join, relative } from 'node:path'
import standaloneCode from 'ajv/dist/standalone/index.js'
import { build, transform } from 'esbuild'
import { OPTIONS } from './esbuild-options.mjs'
import { describeBundle } from './packages.mjs'

const ROOT = join(import.meta.dirname, '..')
const DIST = join(ROOT, 'dist')
const VENDOR = join(DIST, 'vendor')
const IMPORT = /(\bfrom |\bimport\()(['"])((?:viem|mppx)(?:\/[\w/]+)?)\2/g
/** Their names, of values only: `import { a, type B } from 'viem'` and `const { a } = await import('viem')`. */
const NAMES = /(?:\bimport|\bconst) \{([^}]*)\}(?: from | = await import\()'((?:viem|mppx)(?:\/[\w/]+)?)'/g
const fileOf = (specifier) => `${specifier.replaceAll('/', '-')}.js`
/** What tsc has written: the sources name the packages, so a second run finds the same. */
const sources = readdirSync(join(ROOT, 'src'), { recursive: true }).filter((path) => path.endsWith('.ts'))
/** The names that are imported, by specifier: a start would read the word lists of viem/accounts and much more otherwise. */
const names = new Map()
for (const path of sources.filter((each) => !each.startsWith('service') && !/documents/.test(each))) {
  const text = readFileSync(join(ROOT, 'src', path), 'utf8').replace(/\bimport type .* from '.*'/g, '')
  const imports = [...text.matchAll(NAMES)]
  if (imports.length < [...text.matchAll(IMPORT)].length)
    throw new Error(`${path} has to import each name of viem and mppx: only those are bundled`)
  for (const [, list, specifier] of imports) {
    const values = list.split(',').map((each) => each.trim().replace(/(?: as |:).*/, ''))
    const known = names.get(specifier) ?? new Set()
    for (const value of values) if (/^\w+$/.test(value)) known.add(value)
    names.set(specifier, known)
  }
}

rmSync(VENDOR, { recursive: true, force: true })
const { metafile } = await build({
  ...OPTIONS,
  external: [...OPTIONS.external, '@modelcontextprotocol/*'],
  entryPoints: Object.fromEntries(
    Array.from(names.keys(), (each) => [each.replaceAll('/', '-'), `entry:${each}`]),
  ),
  plugins: [
    {
      name: 'entries',
      setup({ onResolve, onLoad }) {
        onResolve({ filter: /^entry:/ }, ({ path }) => ({
          path: path.slice('entry:'.length),
          namespace: 'entry',
        }))
        onLoad({ filter: /.*/, namespace: 'entry' }, ({ path }) => ({
          contents: `export { ${[...names.get(path)].join(', ')} } from '${path}'`,
          resolveDir: ROOT,
        }))
      },
    },
  ],
  outdir: VENDOR,
})

describeBundle(metafile, { directory: VENDOR, manifest: 'package.json' })

for (const path of sources) {
  const file = join(DIST, path.replace(/\.ts$/, '.js'))
  if (path.startsWith('service') || /documents/.test(path) || !existsSync(file)) continue
  const text = readFileSync(file, 'utf8')
  const vendor = relative(dirname(file), VENDOR)
  const bundled = text.replace(
    IMPORT,
    (_, start, quote, name) => `${start}${quote}${vendor}/${fileOf(name)}${quote}`,
  )
  if (bundled !== text) writeFileSync(file, bundled)
}

const { shapeCompiler, shapeValidator } = await import(join(DIST, 'engine/catalog/shape-validator.js'))
const validator = [
  "import { createRequire } from 'node:module'",
  'const require = createRequire(import.meta.url)',
  standaloneCode.default(shapeCompiler(), shapeValidator()),
  'export const shapeValidator = () => validate',
]
const { code } = await transform(validator.join('\n'), { minifySyntax: true, minifyWhitespace: true })
writeFileSync(join(DIST, 'engine/catalog/generated-validator.js'), code)
const checkShape = join(DIST, 'engine/catalog/check-shape.js')
writeFileSync(
  checkShape,
  readFileSync(checkShape, 'utf8').replace('./shape-validator.js', './generated-validator.js'),
)
