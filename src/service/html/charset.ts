/** Decoded text, and its character set. */
export interface Decoded {
  readonly text: string
  readonly charset: string
  /** Name of an unknown character set; the text was decoded as UTF-8. */
  readonly unknown: string | undefined
}

const MARKS: readonly (readonly [readonly number[], string])[] = [
  [[0xef, 0xbb, 0xbf], 'utf-8'],
  [[0xfe, 0xff], 'utf-16be'],
  [[0xff, 0xfe], 'utf-16le'],
]
const PRESCAN = 1024

/** The order of the HTML standard: byte order mark, header, `<meta>` among the first kilobyte, UTF-8. */
export function decodePage(bytes: Uint8Array, header: string | undefined): Decoded {
  const mark = MARKS.find(([start]) => start.every((byte, place) => bytes[place] === byte))?.[1]
  const named =
    mark ?? charsetOf(header) ?? charsetOf(Buffer.from(bytes.subarray(0, PRESCAN)).toString('latin1'))
  const decoder = decoderOf(named ?? 'utf-8')
  const used = decoder ?? new TextDecoder()
  return {
    text: used.decode(bytes),
    charset: used.encoding,
    unknown: decoder === undefined ? named?.slice(0, 40) : undefined,
  }
}

function charsetOf(text: string | undefined): string | undefined {
  return /charset\s{0,9}=\s{0,9}["']?\s{0,9}([\w.:-]{1,40})/i.exec(text ?? '')?.[1]
}

function decoderOf(label: string): InstanceType<typeof TextDecoder> | undefined {
  try {
    return new TextDecoder(label)
  } catch {
    return undefined
  }
}
