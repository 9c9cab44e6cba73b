import { copyFileSync, readFileSync } from 'node:fs'
import { basename, join, relative, resolve } from 'node:path'
import { CatalogError, compileText, documentNames, generateTypes, type Issue } from '../engine/internal.ts'
import { UsageError, type Call } from './command.ts'
import { readOpenapi } from './init/openapi.ts'
import { packageSource, type PackageSource } from './init/package-source.ts'
import { sellOpenapi } from './init/proxy-shop.ts'
import { firstShop, TYPES_FILE } from './init/shop.ts'
import { taken, writeFiles, type Files } from './new-files.ts'

export async function init(call: Call): Promise<number> {
  const { positionals, flags } = call
  const [folder] = positionals
  if (folder === undefined) throw new UsageError('missing argument: the folder to create')
  const source = flags.text('from')
  if (source !== undefined && flags.given('typescript'))
    throw new UsageError('--typescript writes a handler: a project --from an API has none')
  return source === undefined ? beginShop(call, folder) : beginProxy(call, folder, source)
}

/** What npm takes for the name of a package. */
function nameOf(folder: string): string {
  const name = basename(resolve(folder))
    .toLowerCase()
    .replace(/[^a-z0-9-]+/g, '-')
  return name.replace(/^-+|-+$/g, '') || 'shop'
}

function beginShop(call: Call, folder: string): number {
  const source = packageSource(call.version)
  const language = call.flags.given('typescript') ? 'typescript' : 'javascript'
  const files = new Map(firstShop(nameOf(folder), source, language))
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

function beginProxy(call: Call, folder: string, source: string): number {
  const { terminal } = call
  const read = readOpenapi(readFileSync(source, 'utf8'))
  if (read.kind === 'fault') {
    terminal.err(`ratecard init: ${source} ${read.sentence}`)
    return 1
  }
  const origin = packageSource(call.version)
  const { files, lines, routes } = sellOpenapi(read.openapi, nameOf(folder), origin)
  if (routes === 0) {
    terminal.err(`ratecard init: ${source} has no operation that can be sold\n${lines.join('\n')}`)
    return 1
  }
  if (!write(call, folder, files, origin)) return 1
  const left = openQuestions(files)
  for (const line of ['', ...lines, '', `${counted(routes, 'route')}; left for you in catalog.yaml: ${left}`])
    terminal.out(line)
  terminal.out(
    `next: ${installing(folder, origin, call.version)}, then "npx ratecard check" names the place of each`,
  )
  return 0
}

/** The commands that install a new project. */
function installing(folder: string, source: PackageSource, version: string): string {
  if (source.kind === 'installable') return `cd ${folder} && npm install`
  const tarball = join(relative(resolve(folder), '.'), `ratecard-${version}.tgz`)
  return `npm pack && cd ${folder} && npm install ${tarball}`
}

/** Writes all of them, or nothing. */
function write({ terminal }: Call, folder: string, files: Files, source: PackageSource): boolean {
  const there = taken(folder, files)
  if (there.length > 0) {
    terminal.err(`ratecard init: nothing was written: ${folder} already has ${there.join(', ')}`)
    return false
  }
  writeFiles(folder, files)
  if (source.kind === 'installable' && source.tarball !== undefined)
    copyFileSync(source.tarball, join(folder, basename(source.tarball)))
  for (const path of files.keys()) terminal.out(`wrote ${join(folder, path)}`)
  return true
}

/** What "check" will refuse until the operator has decided it. */
function openQuestions(files: Files): string {
  const issues = issuesOf(files)
  const prices = issues.filter(
    ({ code, message }) => code === 'value_missing' && message.includes('no price'),
  )
  const examples = issues.filter(({ code }) => code === 'example_missing')
  const rest = issues.length - prices.length - examples.length
  return [
    counted(prices.length, 'price'),
    ...(examples.length > 0 ? [counted(examples.length, 'example')] : []),
    ...(rest > 0 ? [counted(rest, 'mistake')] : []),
  ].join(', ')
}

function counted(number: number, noun: string): string {
  return `${number} ${noun}${number === 1 ? '' : 's'}`
}

function issuesOf(files: Files): readonly Issue[] {
  try {
    const read = (path: string): Buffer | undefined => {
      const text = files.get(path.replace(/^\.\//, ''))
      return text === undefined ? undefined : Buffer.from(text)
    }
    compileText('catalog.yaml', files.get('catalog.yaml') ?? '', {
      documents: documentNames,
      handlers: undefined,
      read,
    })
    return []
  } catch (fault) {
    if (fault instanceof CatalogError) return fault.issues.filter(({ severity }) => severity === 'error')
    throw fault
  }
}
