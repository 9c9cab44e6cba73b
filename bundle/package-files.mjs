/**
 * Writes dist/.npmignore: declarations that no entry point leads to, and modules that were types only, do nothing for a
 * user of the package.
 */
import { readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { dirname, join, relative } from 'node:path'

const ROOT = join(import.meta.dirname, '..')
const DIST = join(ROOT, 'dist')
const SPECIFIER = /(?:\bfrom|\bimport)\s*\(?\s*['"](\.[^'"]+)['"]/g

const read = (file) => readFileSync(file, 'utf8')
const namedIn = (file) =>
  [...read(file).matchAll(SPECIFIER)].map(([, specifier]) => join(dirname(file), specifier))
const toDeclaration = (file) => file.replace(/(?<!\.d)\.[jt]s$/, '.d.ts')

const files = readdirSync(DIST, { recursive: true, encoding: 'utf8' }).map((name) => join(DIST, name))
const declarations = files.filter((file) => file.endsWith('.d.ts'))
const modules = files.filter((file) => file.endsWith('.js'))

const { exports } = JSON.parse(read(join(ROOT, 'package.json')))
const needed = new Set(Object.values(exports).flatMap(({ types }) => (types ? [join(ROOT, types)] : [])))
// A set is walked to its end, also where it grows on the way.
for (const file of needed)
  for (const other of namedIn(file).map(toDeclaration)) if (declarations.includes(other)) needed.add(other)

const imported = new Set(modules.flatMap(namedIn))
const isEmpty = (file) => /^export \{\};\s*(?:\/\/.*\s*)?$/.test(read(file))

const unneeded = [
  ...declarations.filter((file) => !needed.has(file)),
  ...modules.filter((file) => isEmpty(file) && !imported.has(file)),
]
writeFileSync(join(DIST, '.npmignore'), unneeded.map((file) => `/${relative(DIST, file)}\n`).join(''))
