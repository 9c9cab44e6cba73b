import { createReadStream } from 'node:fs'
import { link, open, rm } from 'node:fs/promises'
import { basename, dirname, join, resolve } from 'node:path'
import { createInterface } from 'node:readline'

/** Bytes per write. */
const PIECE = 64 * 1024

/**
 * Writes lines to a new file, which is complete and durable as soon as it exists, and readable by its owner alone: it
 * contains signed payments. Rejects when the file exists.
 */
export async function writeLines(path: string, lines: AsyncIterable<string>): Promise<void> {
  const file = resolve(path)
  const draft = join(dirname(file), `.${basename(file)}.${process.pid}.tmp`)
  const handle = await open(draft, 'wx', 0o600)
  try {
    let text = ''
    for await (const line of lines) {
      text += `${line}\n`
      if (text.length < PIECE) continue
      await handle.appendFile(text)
      text = ''
    }
    await handle.appendFile(text)
    await handle.sync()
    await handle.close()
    await link(draft, file)
  } finally {
    await handle.close().catch(() => undefined)
    await rm(draft, { force: true })
  }
}

/** The lines of a file. Rejects when it cannot be read. */
export async function* readLines(path: string): AsyncGenerator<string> {
  const stream = createReadStream(path, 'utf8')
  yield* createInterface({ input: stream, crlfDelay: Infinity })
}
