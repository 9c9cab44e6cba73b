import { isJsonObject, type Json, type JsonObject } from '../../engine/base/json.ts'
import { uniqueNames } from './names.ts'
import type { BrokenReferences } from './reference.ts'

/** Where a joined document has the files that it refers to, by a name of each. */
const FILES = 'x-files'

export type ReadFile =
  | { readonly kind: 'read'; readonly value: Json }
  /** Why it cannot be read: completes "which …". */
  | { readonly kind: 'fault'; readonly reason: string }

export interface JoinedDocument {
  /** Each reference leads into the document itself, except the unread ones. */
  readonly openapi: JsonObject
  readonly unread: BrokenReferences
}

interface OtherFile {
  readonly name: string
  readonly read: ReadFile
}

/** More files do not describe one API. */
const MOST_FILES = 10_000

/** Joins a document and the files that it refers to, and those they refer to. `home` is the address of the document. */
export async function joinFiles(
  root: JsonObject,
  home: URL,
  read: (address: URL) => Promise<ReadFile>,
): Promise<JoinedDocument> {
  const files = new Map<string, OtherFile>()
  const name = uniqueNames('-')
  const open: { readonly value: Json; readonly base: URL }[] = [{ value: root, base: home }]
  for (let next = open.pop(); next !== undefined; next = open.pop()) {
    for (const address of addressesIn(next.value, next.base)) {
      if (address.href === home.href || files.has(address.href)) continue
      const file: ReadFile =
        files.size < MOST_FILES
          ? await read(address)
          : { kind: 'fault', reason: `is one of more than ${MOST_FILES} files` }
      files.set(address.href, { name: name(nameOf(address)), read: file })
      if (file.kind === 'read') open.push({ value: file.value, base: address })
    }
  }
  const unread = new Map<string, string>()
  const place: Place = { home, files, unread }
  const others = [...files].flatMap(([href, { name: key, read: file }]): [string, Json][] =>
    file.kind === 'read' ? [[key, rewrite(file.value, new URL(href), place)]] : [],
  )
  const openapi = rewrite(root, home, place)
  const joined = isJsonObject(openapi) ? openapi : root
  return {
    openapi: others.length === 0 ? joined : { ...joined, [FILES]: Object.fromEntries(others) },
    unread,
  }
}

/** `models/Pet.yaml` → `Pet`. */
function nameOf({ pathname }: URL): string {
  const [, base = ''] = /([^/]*?)(?:\.\w+)?$/.exec(pathname) ?? []
  return base.replace(/[^A-Za-z0-9_.-]+/g, '_') || 'file'
}

/** The addresses of other files in a part of a document, without their fragments. */
function addressesIn(value: Json, base: URL): URL[] {
  const found = new Map<string, URL>()
  const walk = (each: Json): void => {
    if (Array.isArray(each)) each.forEach(walk)
    else if (isJsonObject(each)) {
      const address = addressOf(each['$ref'], base)
      if (address !== undefined) found.set(address.href, address)
      Object.values(each).forEach(walk)
    }
  }
  walk(value)
  return [...found.values()]
}

/** Undefined: a reference into the same file, or none. */
function addressOf(reference: Json | undefined, base: URL): URL | undefined {
  if (typeof reference !== 'string' || reference.startsWith('#') || !URL.canParse(reference, base.href))
    return undefined
  const address = new URL(reference, base)
  address.hash = ''
  return address
}

interface Place {
  readonly home: URL
  readonly files: ReadonlyMap<string, OtherFile>
  readonly unread: Map<string, string>
}

/** A part of the file at `base`, with references that hold in the joined document. */
function rewrite(value: Json, base: URL, place: Place): Json {
  if (Array.isArray(value)) return value.map((each) => rewrite(each, base, place))
  if (!isJsonObject(value)) return value
  return Object.fromEntries(
    Object.entries(value).map(([key, each]) => [
      key,
      key === '$ref' && typeof each === 'string'
        ? newReference(each, base, place)
        : rewrite(each, base, place),
    ]),
  )
}

function newReference(reference: string, base: URL, { home, files, unread }: Place): string {
  const address = reference.startsWith('#') ? base : addressOf(reference, base)
  if (address === undefined) {
    unread.set(reference, 'is no address')
    return reference
  }
  const [, fragment = ''] = /^[^#]*#?(.*)$/s.exec(reference) ?? []
  if (address.href === home.href) return `#${fragment}`
  const file = files.get(address.href)
  if (file?.read.kind === 'read') return `#/${FILES}/${file.name}${fragment}`
  const shown = relativeTo(home, address) + (fragment === '' ? '' : `#${fragment}`)
  unread.set(shown, file?.read.reason ?? 'was not read')
  return shown
}

/** Below the folder of the document, otherwise whole. */
function relativeTo(home: URL, address: URL): string {
  const folder = new URL('.', home).href
  return decodeURI(address.href.startsWith(folder) ? address.href.slice(folder.length) : address.href)
}
