import { mkdir, readFile, rename, rm, stat, utimes, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import type { ListFile } from './list-reader.ts'

/** A list on disk. Its file's time is when it was last known to be current: putting one there states it. */
export interface StoredList {
  readonly file: ListFile
  readonly fetchedAt: number
}

const FORMS = ['xml', 'csv'] as const

/** Where a list is in a directory: `us_ofac_sdn.xml`, or `us_ofac_sdn.csv` and its aliases in `us_ofac_sdn.alt.csv`. */
function place(directory: string, id: string, form: string): string {
  return join(directory, `${id}.${form}`)
}

/** The newest file of a list with its time in milliseconds; undefined when there is none. */
async function newest(directory: string, id: string): Promise<{ path: string; at: number } | undefined> {
  const found = await Promise.all(
    FORMS.map(async (form) => {
      const path = place(directory, id, form)
      const at = await stat(path).then(
        ({ mtimeMs }) => Math.floor(mtimeMs),
        () => undefined,
      )
      return at === undefined ? [] : [{ path, at }]
    }),
  )
  return found.flat().sort((a, b) => b.at - a.at)[0]
}

/** When the list on disk was last known to be current; undefined when there is none. */
export async function storedAt(directory: string, id: string): Promise<number | undefined> {
  return (await newest(directory, id))?.at
}

export async function loadStored(directory: string, id: string): Promise<StoredList | undefined> {
  const found = await newest(directory, id)
  if (found === undefined) return undefined
  const main = await readFile(found.path)
  const aliases = found.path.endsWith('.csv')
    ? await readFile(place(directory, id, 'alt.csv')).catch(() => undefined)
    : undefined
  return { file: { main, aliases }, fetchedAt: found.at }
}

/** Replaces the list on disk in one step: a reader finds the old one or the new one. */
export async function store(directory: string, id: string, { file, fetchedAt }: StoredList): Promise<void> {
  const form = isXml(file) ? 'xml' : 'csv'
  await mkdir(directory, { recursive: true })
  if (file.aliases !== undefined) await put(place(directory, id, 'alt.csv'), file.aliases, fetchedAt)
  await put(place(directory, id, form), file.main, fetchedAt)
  await Promise.all(
    FORMS.filter((other) => other !== form).map((other) => rm(place(directory, id, other), { force: true })),
  )
}

/**
 * Writes the accounts on EVM chains that a list names to `us_ofac_sdn.addresses.txt`, which `payments.payers.deny` of a
 * catalog can name. Removed when the list names none: a missing file is noticed, an old one is not. Its time is that of the
 * list, so that `ratecard_deny_list_age_seconds` tells whether the list is kept current.
 */
export async function storeWallets(
  directory: string,
  id: string,
  wallets: readonly string[],
  fetchedAt: number,
): Promise<void> {
  const path = place(directory, id, 'addresses.txt')
  if (wallets.length === 0) return rm(path, { force: true })
  const text = [`# digital currency addresses of ${id}`, ...[...new Set(wallets)].sort(), ''].join('\n')
  // A catalog that names the file is read again when it is another one or its time has changed.
  const isWritten = await readFile(path, 'utf8').then(
    (before) => before === text,
    () => false,
  )
  if (isWritten) return utimes(path, fetchedAt / 1000, fetchedAt / 1000)
  await mkdir(directory, { recursive: true })
  await put(path, Buffer.from(text), fetchedAt)
}

/** The list on disk is still current. */
export async function confirmStored(directory: string, id: string, at: number): Promise<void> {
  const found = await newest(directory, id)
  if (found === undefined) return
  const wallets = place(directory, id, 'addresses.txt')
  await utimes(found.path, at / 1000, at / 1000)
  // Most lists name no accounts.
  await utimes(wallets, at / 1000, at / 1000).catch(() => undefined)
}

async function put(path: string, bytes: Uint8Array, at: number): Promise<void> {
  const beside = `${path}.${process.pid}.part`
  try {
    await writeFile(beside, bytes)
    await utimes(beside, at / 1000, at / 1000)
    await rename(beside, path)
  } catch (fault) {
    await rm(beside, { force: true })
    throw fault
  }
}

function isXml({ main }: ListFile): boolean {
  return new TextDecoder()
    .decode(main.subarray(0, 64))
    .replace(/^\uFEFF/, '')
    .trimStart()
    .startsWith('<')
}
