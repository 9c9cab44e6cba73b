import { copyFileSync, existsSync, readdirSync, readFileSync } from 'node:fs'
import { basename, dirname, join, relative, resolve } from 'node:path'
import { generateTypes } from '../engine/catalog/generate-types.ts'
import { compileText } from '../engine/catalog/load-catalog.ts'
import { documentNames } from '../engine/documents/all.ts'
import { parsePrice } from '../engine/base/money.ts'
import type { Flags } from '../engine/service-definition.ts'
import type { Call } from './command.ts'
import { UsageError } from '../command-line/usage-error.ts'
import { openDocument } from './init/document-source.ts'
import type { Filter } from './init/operation.ts'
import { sellOpenapi } from './init/proxy-shop.ts'
import { readOpenapi } from './init/read-openapi.ts'
import {
  type Example,
  EXAMPLES,
  exampleShop,
  firstShop,
  joinManifests,
  packageSource,
  TYPES_FILE,
  type PackageSource,
} from './init/project-files.ts'
import { replaceFile, taken, writeFiles, type Files } from './new-files.ts'
import { countOf } from '../engine/base/words.ts'

/** Flags that say something about the operations of a document. */
const OF_AN_API = ['price', 'include', 'exclude'] as const

export async function init(call: Call): Promise<number> {
  const { positionals, flags } = call
  const [folder = '.'] = positionals
  const source = flags.text('from')
  if (source !== undefined && flags.given('typescript'))
    throw new UsageError('--typescript writes a handler: a project --from an API has none')
  const unused = source === undefined ? OF_AN_API.find((name) => flags.given(name)) : undefined
  if (unused !== undefined)
    throw new UsageError(`--${unused} is about the operations of an API: name its document with --from`)
  const example = exampleOf(flags)
  if (source !== undefined && example !== undefined)
    throw new UsageError('--example writes a shop of its own: it takes no --from')
  if (example !== undefined && flags.given('typescript'))
    throw new UsageError('--example writes JavaScript: it takes no --typescript')
  return source === undefined ? beginShop(call, folder, example) : beginProxy(call, folder, source)
}

function exampleOf(flags: Flags): Example | undefined {
  const wanted = flags.text('example')
  const example = EXAMPLES.find((each) => each === wanted)
  if (wanted !== undefined && example === undefined)
    throw new UsageError(`--example takes ${EXAMPLES.join(' or ')}`)
  return example
}

/** What npm takes for the name of a package. */
function nameOf(folder: string): string {
  const name = basename(resolve(folder))
    .toLowerCase()
    .replace(/[^a-z0-9-]+/g, '-')
  return name.replace(/^-+|-+$/g, '') || 'shop'
}

function beginShop(call: Call, folder: string, example: Example | undefined): number {
  const source = packageSource(call.version)
  const language = call.flags.given('typescript') ? 'typescript' : 'javascript'
  const name = nameOf(folder)
  const files = new Map(
    example === undefined ? firstShop(name, source, language) : exampleShop(name, source, example),
  )
  const { catalog } = compileText('catalog.yaml', files.get('catalog.yaml') ?? '', {
    documents: documentNames,
    handlers: undefined,
    read: () => undefined,
  })
  files.set(TYPES_FILE[language], generateTypes(catalog, 'ratecard/handler'))
  if (!write(call, folder, files, source)) return 1
  call.terminal.out(`\nnext: ${installing(folder, source, call.version)} && npm run sandbox`)
  return 0
}

async function beginProxy(call: Call, folder: string, source: string): Promise<number> {
  const { terminal, flags } = call
  const price = flags.text('price')
  if (price !== undefined && parsePrice(price).kind === 'fault')
    throw new UsageError('--price takes USD for one call, such as 0.005')
  const opened = await openDocument(source)
  const read = await readOpenapi(opened)
  if (read.kind === 'fault') {
    terminal.err(`ratecard init: ${source} ${read.sentence}`)
    return 1
  }
  const origin = packageSource(call.version)
  const { files, lines, table, routes, operations } = sellOpenapi(read.openapi, read.broken, {
    name: nameOf(folder),
    source: origin,
    price,
    filter: filterOf(flags.all('include'), flags.all('exclude')),
    origin: opened.home.protocol === 'file:' ? undefined : new URL('.', opened.home).href.replace(/\/$/, ''),
  })
  if (routes === 0) {
    terminal.err(`ratecard init: ${source} has no operation that can be sold\n${lines.join('\n')}`)
    return 1
  }
  if (!write(call, folder, files, origin)) return 1
  const open = price === undefined ? '; left for you: the price, under "defaults" in catalog.yaml' : ''
  for (const line of [
    '',
    ...lines,
    ...(lines.length === 0 ? [] : ['']),
    ...table,
    '',
    `${countOf(routes, 'route')} of ${countOf(operations, 'operation')}${open}`,
  ])
    terminal.out(line)
  terminal.out(`next: ${installing(folder, origin, call.version)} && npm run sandbox`)
  return 0
}

/**
 * Patterns such as `/pets*` or `POST *`, held against `GET /pets/{petId}`; without a method they mean all. What
 * `include` names is imported whatever it is about.
 */
function filterOf(include: readonly string[], exclude: readonly string[]): Filter {
  const compile = (patterns: readonly string[]): RegExp[] =>
    patterns.map((each) => {
      const [, method = '', path = ''] = /^\s*(?:([A-Za-z]+)\s+)?(.*?)\s*$/.exec(each) ?? []
      const exact = path.split('*').map((part) => part.replace(/[.*+?^${}()|[\]\\]/g, '\\$&'))
      return new RegExp(`^(?:${method.toUpperCase() || '[A-Z]+'}|\\*) ${exact.join('.*')}$`)
    })
  const [named, unwanted] = [compile(include), compile(exclude)]
  return (title) => {
    if (unwanted.some((each) => each.test(title))) return 'unwanted'
    if (named.length === 0) return 'wanted'
    return named.some((each) => each.test(title)) ? 'named' : 'unwanted'
  }
}

/** The commands that install a new project. */
function installing(folder: string, source: PackageSource, version: string): string {
  const enter = resolve(folder) === resolve('.') ? '' : `cd ${folder} && `
  if (source.kind === 'installable') return `${enter}npm install`
  const tarball = join(relative(resolve(folder), '.'), `ratecard-${version}.tgz`)
  const pack = resolve('.') === source.root ? 'npm pack' : `npm pack ${source.root}`
  return `${pack} && ${enter}npm install ${tarball}`
}

/** Files of one folder that are named one by one. */
const MOST_NAMED = 20

/** Writes all files or none. An existing package.json is kept, and missing members are added to it. */
function write({ terminal }: Call, folder: string, given: Files, source: PackageSource): boolean {
  const refuse = (reason: string): boolean => {
    terminal.err(`ratecard init: nothing was written: ${reason}`)
    return false
  }
  const [files, manifest] = [new Map(given), join(folder, 'package.json')]
  const added = files.get('package.json')
  const joined =
    added !== undefined && existsSync(manifest)
      ? joinManifests(readFileSync(manifest, 'utf8'), added, readdirSync(folder))
      : undefined
  if (joined?.kind === 'fault') return refuse(`${manifest} ${joined.sentence}`)
  if (joined !== undefined) files.delete('package.json')
  const there = taken(folder, files)
  if (there.length > 0) return refuse(`${folder} already has ${there.join(', ')}`)
  writeFiles(folder, files)
  if (joined !== undefined) {
    replaceFile(manifest, joined.text)
    terminal.out(`changed ${manifest}`)
  }
  const tarball = source.kind === 'installable' ? source.tarball : undefined
  if (tarball !== undefined && dirname(tarball) !== resolve(folder))
    copyFileSync(tarball, join(folder, basename(tarball)))
  const folders = new Map<string, string[]>()
  for (const path of files.keys()) folders.set(dirname(path), [...(folders.get(dirname(path)) ?? []), path])
  for (const [name, paths] of folders)
    if (paths.length > MOST_NAMED)
      terminal.out(`wrote ${countOf(paths.length, 'file')} into ${join(folder, name)}`)
    else for (const path of paths) terminal.out(`wrote ${join(folder, path)}`)
  return true
}
