import { existsSync, readFileSync } from 'node:fs'
import { basename, dirname, join, resolve, sep } from 'node:path'
import { fileURLToPath } from 'node:url'
import type { JsonObject } from '../../engine/base/json.ts'
import { membersAt, readObject } from '../json-access.ts'
import type { Files } from '../new-files.ts'

export type Language = 'javascript' | 'typescript'

/** The files of a new project, each as it is written. In TypeScript the compiled ones are next to their sources. */
const TEMPLATES = new URL('../../../templates/project/', import.meta.url)

function read(path: string): string {
  return readFileSync(new URL(path, TEMPLATES), 'utf8')
}

/** Parts of a package.json that only some projects have. */
interface Additions {
  readonly scripts?: Readonly<Record<string, string>>
  readonly devDependencies?: Readonly<Record<string, string>>
}

/** The files of every project. */
export function commonFiles(
  name: string,
  source: PackageSource,
  language: Language,
  additions: Additions = {},
): Files {
  const { scripts, ...rest } = additions
  const manifest = {
    name,
    private: true,
    type: 'module',
    scripts: {
      check: 'ratecard check',
      sandbox: 'ratecard serve --sandbox',
      start: 'ratecard serve',
      ...scripts,
    },
    dependencies: source.kind === 'clone' ? {} : { ratecard: source.range },
    ...rest,
  }
  const workflow = read('ci.yml')
  const compiled = language === 'typescript' ? 'handlers/**/*.js\ntest/**/*.js\n' : ''
  return new Map([
    ['package.json', `${JSON.stringify(manifest, null, 2)}\n`],
    ['.gitignore', `node_modules/\n.ratecard/\n.env\n${compiled}`],
    ['.dockerignore', `node_modules\n.ratecard\n.env\n.git\n`],
    ['Dockerfile', read(`${language}/Dockerfile`)],
    [
      '.github/workflows/ci.yml',
      'test' in manifest.scripts ? workflow : workflow.replace(/^.*npm test\n/m, ''),
    ],
  ])
}

export type JoinedManifests =
  | { readonly kind: 'joined'; readonly text: string }
  /** Why they cannot be joined, as a sentence without subject. */
  | { readonly kind: 'fault'; readonly sentence: string }

/** What npm writes itself, and what holds no code. */
const NO_CODE = /^\.|^(node_modules|package\.json|package-lock\.json|license|readme)$|\.(md|tgz|txt)$/i

/**
 * Adds what a new project needs to an existing package.json. `beside` are the names next to it: `npm init` writes
 * `"type": "commonjs"`, which is changed where no code depends on it.
 */
export function joinManifests(there: string, added: string, beside: readonly string[]): JoinedManifests {
  const [old, own] = [readObject(there), readObject(added)]
  if (old === undefined) return { kind: 'fault', sentence: 'is not a JSON object' }
  const code = beside.find((name) => !NO_CODE.test(name))
  if (old['type'] === 'commonjs' && code !== undefined)
    return {
      kind: 'fault',
      sentence: `has "type": "commonjs", and ${code} may depend on it: handlers are ES modules. Run "npm pkg set type=module", or choose another folder`,
    }
  // The test script that `npm init` writes runs no test.
  const scripts = membersAt(old, 'scripts').filter(
    ([, line]) => typeof line !== 'string' || !line.includes('no test specified'),
  )
  // Versions stay as they are, except that of the package itself: its tarball is copied into the project.
  const both = (name: string): [string, JsonObject] => [
    name,
    Object.fromEntries([
      ...membersAt(own, name),
      ...membersAt(old, name),
      ...membersAt(own, name).filter(([dependency]) => dependency === 'ratecard'),
    ]),
  ]
  const joined = {
    ...own,
    ...old,
    type: 'module',
    scripts: { ...Object.fromEntries(membersAt(own, 'scripts')), ...Object.fromEntries(scripts) },
    ...Object.fromEntries(['dependencies', 'devDependencies'].map(both)),
  }
  return { kind: 'joined', text: `${JSON.stringify(joined, null, 2)}\n` }
}

/** What a first shop can be about, beside the one without an example. */
export const EXAMPLES = ['metered'] as const
export type Example = (typeof EXAMPLES)[number]

/** A shop in JavaScript that shows one way to sell. */
export function exampleShop(name: string, source: PackageSource, example: Example): Files {
  return new Map([
    ...EXAMPLE_FILES[example].map((path): [string, string] => [path, read(`${example}/${path}`)]),
    ['tsconfig.json', read('javascript/tsconfig.json')],
    ...commonFiles(name, source, 'javascript', IN_JAVASCRIPT),
  ])
}

const EXAMPLE_FILES: Readonly<Record<Example, readonly string[]>> = {
  metered: [
    'catalog.yaml',
    'handlers/index.js',
    'handlers/chat.js',
    'handlers/model.js',
    'test/chat.test.js',
  ],
}

/** A shop that sells one thing, with everything that belongs to it. */
export function firstShop(name: string, source: PackageSource, language: Language): Files {
  const ending = language === 'typescript' ? 'ts' : 'js'
  const own = [`handlers/index.${ending}`, `handlers/moon.${ending}`, `test/moon.test.${ending}`]
  return new Map([
    ['catalog.yaml', read('catalog.yaml')],
    ...[...own, 'tsconfig.json'].map((path): [string, string] => [path, read(`${language}/${path}`)]),
    ...commonFiles(name, source, language, language === 'typescript' ? IN_TYPESCRIPT : IN_JAVASCRIPT),
  ])
}

/** File of the generated types. */
export const TYPES_FILE: Readonly<Record<Language, string>> = {
  javascript: 'handlers/catalog.d.ts',
  typescript: 'handlers/catalog.ts',
}

/** Handlers may use what Node.js has, such as Buffer, in both languages. */
const devDependencies = { '@types/node': '^20.19.0', typescript: '^6.0.0' }

const IN_JAVASCRIPT: Additions = {
  scripts: { test: 'node --test', types: `ratecard types --out ${TYPES_FILE.javascript} && tsc` },
  devDependencies,
}

const IN_TYPESCRIPT: Additions = {
  scripts: {
    build: 'tsc',
    check: 'tsc && ratecard check',
    // npm install and npm ci run it: every command then finds the handlers.
    prepare: 'tsc',
    sandbox: 'tsc && ratecard serve --sandbox',
    test: 'tsc && node --test test/*.test.js',
    types: `ratecard types --out ${TYPES_FILE.typescript}`,
  },
  devDependencies,
}

/** Where npm gets the package of a new project from. */
export type PackageSource =
  /** The range or the file for `dependencies`; a tarball is copied into the project. */
  | { readonly kind: 'installable'; readonly range: string; readonly tarball: string | undefined }
  /** This is a clone in `root`: a project has to be given its tarball. */
  | { readonly kind: 'clone'; readonly root: string }

/** The tarball that the running package was installed from, else its version. */
export function packageSource(version: string): PackageSource {
  const root = resolve(fileURLToPath(new URL('../../..', import.meta.url)))
  if (basename(dirname(root)) !== 'node_modules') return { kind: 'clone', root }
  const tarball = tarballOf(root)
  const range = tarball === undefined ? `^${version}` : `file:${basename(tarball)}`
  return { kind: 'installable', range, tarball }
}

/** The tarball that the project around this package names; npm and pnpm both write it there. */
function tarballOf(root: string): string | undefined {
  const [project = ''] = root.split(`${sep}node_modules${sep}`)
  const manifest = join(project, 'package.json')
  if (!existsSync(manifest)) return undefined
  const { ratecard } = Object.fromEntries(
    ['dependencies', 'devDependencies'].flatMap((name) =>
      membersAt(readObject(readFileSync(manifest, 'utf8')), name),
    ),
  )
  return typeof ratecard === 'string' && ratecard.startsWith('file:')
    ? resolve(project, ratecard.slice('file:'.length))
    : undefined
}
