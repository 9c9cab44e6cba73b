import { fileURLToPath, pathToFileURL } from 'node:url'
import lighthouse, { type Result } from 'lighthouse'
import { chromium, type Browser } from 'playwright-core'
import { freePort } from '../../support/reverse-proxy.ts'

export interface Finding {
  readonly element: string
  readonly message: string
}

interface Tester {
  readonly errors: readonly Finding[]
  readonly warnings: readonly Finding[]
  validate_manifest(text: string, label: string): boolean
}

const ARD = fileURLToPath(new URL('../node_modules/lighthouse/third-party/ard/ard.js', import.meta.url))

/** Lighthouse’s reading of an ARD manifest. */
export async function openConformanceTester(): Promise<Tester> {
  const { ConformanceTester }: { ConformanceTester: new () => Tester } = await import(pathToFileURL(ARD).href)
  return new ConformanceTester()
}

export interface Verdict {
  /** Percent, by category. */
  readonly scores: ReadonlyMap<string, number>
  /** What has cost points. */
  readonly faults: readonly string[]
}

export interface Auditor {
  /** As Lighthouse audits a page by default: on a telephone with a slow line. `headers` go with every request. */
  audit(url: string, headers?: Record<string, string>): Promise<Verdict>
  close(): Promise<void>
}

/** What Lighthouse says when the browser gave it no usable recording, and asks to be run again: it has judged nothing. */
const NOT_RECORDED: ReadonlySet<string> = new Set(['NO_TRACING_STARTED', 'NO_NAVSTART'])
const MOST_RUNS = 3

/** A browser in which Lighthouse looks at pages. */
export async function openAuditor(executablePath: string): Promise<Auditor> {
  const port = await freePort()
  const args = ['--no-sandbox', `--remote-debugging-port=${port}`]
  const browser: Browser = await chromium.launch({ executablePath, args })
  const look = async (url: string, extraHeaders: Record<string, string>): Promise<Result> => {
    for (let run = 1; ; run += 1) {
      const result = await lighthouse(url, { port, logLevel: 'error', extraHeaders })
      if (result === undefined) throw new Error(`Lighthouse says nothing about ${url}`)
      const { runtimeError } = result.lhr
      if (runtimeError === undefined) return result.lhr
      if (run === MOST_RUNS || !NOT_RECORDED.has(runtimeError.code))
        throw new Error(`${url}: ${runtimeError.message}`)
    }
  }
  return {
    audit: async (url, headers = {}) => {
      const { categories, audits } = await look(url, headers)
      const parts = Object.values(categories)
      const faults = parts.flatMap(({ id, auditRefs }) =>
        auditRefs
          .filter(({ weight }) => weight > 0)
          .flatMap(({ id: name }) => audits[name] ?? [])
          .filter(({ score }) => score !== null && score < 1)
          .map(({ title, score, displayValue = '' }) => `${id}: ${title} (${score}) ${displayValue}`),
      )
      return {
        scores: new Map(parts.map(({ id, score }) => [id, Math.round((score ?? 0) * 100)])),
        faults,
      }
    },
    close: () => browser.close(),
  }
}
