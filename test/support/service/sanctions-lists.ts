import { readFileSync } from 'node:fs'
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { Sanctions, type SanctionsOptions } from '../../../src/service/sources/sanctions.ts'
import { STAND_IN_LISTS } from '../../../src/service/sources/sanctions/lists.ts'
import { MetricsBySource } from '../../../src/service/sources/source-metrics.ts'
import { WORLD } from './sources.ts'
import { listening } from '../http.ts'

/** A list as a publisher has it, written by hand for tests. */
export function listFile(name: string): Buffer {
  return readFileSync(new URL(`../../fixtures/sanctions/${name}`, import.meta.url))
}

export const OFAC = listFile('ofac.xml').toString('utf8')

/** OFAC's list of some day with the entry at each place in `kept`, and a count that is right. */
export function ofacOf(day: string, kept: number): string {
  const entries = OFAC.match(/ {2}<sdnEntry>[^]*?<\/sdnEntry>/g)?.slice(0, kept) ?? []
  return OFAC.replace(/<Publish_Date>[^<]*/, `<Publish_Date>${day}`)
    .replace(/<Record_Count>[^<]*/, `<Record_Count>${entries.length}`)
    .replace(/ {2}<sdnEntry>[^]*<\/sdnEntry>/, () => entries.join('\n'))
}

interface Teardown {
  teardown(work: () => unknown): void
}

type Answering = (request: IncomingMessage, response: ServerResponse) => void

interface Publisher {
  readonly url: string
  /** From now on it answers so. */
  answer: (how: Answering) => void
  /** Paths in the order in which they were asked for. */
  readonly asked: string[]
}

/** A publisher of lists with the answers of a test. */
export async function openPublisher(t: Teardown, first: Answering | string): Promise<Publisher> {
  const send =
    (text: string): Answering =>
    (_, response) =>
      response.end(text)
  let how = typeof first === 'string' ? send(first) : first
  const asked: string[] = []
  const { url, close } = await listening(
    createServer((request, response) => {
      asked.push(request.url ?? '')
      how(request, response)
    }),
  )
  t.teardown(close)
  return {
    url,
    asked,
    answer: (next) => {
      how = next
    },
  }
}

interface Clock {
  now: number
}

/** Lists that close with the test, with a clock the test sets. */
export function openLists(
  t: Teardown,
  { urls = {}, directory, lists = STAND_IN_LISTS }: Partial<SanctionsOptions>,
  clock: Clock = { now: Date.now() },
): Sanctions {
  const runtime = { ...WORLD, now: () => new Date(clock.now) }
  const opened = new Sanctions({ lists, directory, urls }, runtime, new MetricsBySource(runtime.now))
  t.teardown(() => opened.close())
  return opened
}

export function emptyDirectory(t: Teardown): string {
  const directory = mkdtempSync(join(tmpdir(), 'ratecard-lists-'))
  t.teardown(() => rmSync(directory, { recursive: true, force: true }))
  return directory
}
