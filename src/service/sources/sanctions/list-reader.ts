import { ListFault, ODD_SHARE, type ListContent, type ListedEntry } from './entry.ts'
import { readEuXml } from './eu-xml.ts'
import { readOfacCsv } from './ofac-csv.ts'
import { readOfacXml } from './ofac-xml.ts'
import { readUkCsv } from './uk-csv.ts'
import { readUnXml } from './un-xml.ts'

export type Format = 'ofac' | 'un' | 'uk' | 'eu'

/** A list as it was sent. */
export interface ListFile {
  readonly main: Uint8Array
  /** OFAC's ALT.CSV, where the list is its SDN.CSV. */
  readonly aliases?: Uint8Array | undefined
}

const PIECE = 256 * 1024

/**
 * Reads a list in any form its publisher has for it. `breathe` is awaited between pieces, so that others have a turn.
 * Throws `ListFault` for everything that is not all of a list.
 */
export async function readList(
  format: Format,
  file: ListFile,
  breathe: () => Promise<void>,
): Promise<ListContent> {
  const beginning = new TextDecoder()
    .decode(file.main.subarray(0, 512))
    .replace(/^\uFEFF/, '')
    .trimStart()
  if (beginning === '') throw new ListFault('is empty')
  if (/^(?:<!doctype\s+html|<html)/i.test(beginning)) throw new ListFault('is a web page, not a list')
  const isXml = beginning.startsWith('<')
  const content = isXml ? await readXml(format, file.main, breathe) : readCsv(format, file)
  const sound = content.entries.filter(({ uid, names }) => uid !== '' && names.length > 0)
  const odd = content.entries.length - sound.length
  if (odd > ODD_SHARE * content.entries.length)
    throw new ListFault('has entries without a name or a number: its form has changed')
  const nameless = odd === 0 ? [] : [{ where: 'entry: name or number absent', count: odd }]
  return { ...content, entries: sound, oddities: [...content.oddities, ...nameless] }
}

const XML = { ofac: readOfacXml, un: readUnXml, eu: readEuXml }

async function readXml(
  format: Format,
  bytes: Uint8Array,
  breathe: () => Promise<void>,
): Promise<ListContent> {
  if (format === 'uk') throw new ListFault('is XML; of this list the CSV file is read')
  const entries: ListedEntry[] = []
  const reader = XML[format]((entry) => entries.push(entry))
  const decoder = new TextDecoder()
  for (let start = 0; start < bytes.length; start += PIECE) {
    reader.write(decoder.decode(bytes.subarray(start, start + PIECE), { stream: true }))
    await breathe()
  }
  return { ...reader.end(), entries }
}

function readCsv(format: Format, { main, aliases }: ListFile): ListContent {
  const decoder = new TextDecoder()
  if (format === 'uk') return readUkCsv(decoder.decode(main))
  if (format !== 'ofac') throw new ListFault('is not XML')
  if (aliases === undefined) throw new ListFault('is SDN.CSV without its aliases, which are in ALT.CSV')
  return { publishedAt: null, ...readOfacCsv(decoder.decode(main), decoder.decode(aliases)) }
}
