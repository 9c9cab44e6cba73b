import { existsSync } from 'node:fs'
import { delimiter, join } from 'node:path'
import { chromium, type Browser, type Page } from 'playwright-core'

const NAMES = ['chromium', 'chromium-browser', 'google-chrome']

/** The system’s Chromium; undefined when there is none. */
export function findBrowser(): string | undefined {
  const folders = (process.env['PATH'] ?? '').split(delimiter)
  return folders.flatMap((folder) => NAMES.map((name) => join(folder, name))).find((file) => existsSync(file))
}

/** `--no-sandbox`: as root, as in a container, Chromium does not start with it, and the pages are our own. */
export function openBrowser(executablePath: string): Promise<Browser> {
  return chromium.launch({ executablePath, args: ['--no-sandbox'] })
}

/** Loses the first answers to payments on their way to a page; resolves to the payments that it sends, as they come. */
export async function loseAnswers(tab: Page, path: string, lost: number): Promise<readonly string[]> {
  const sent: string[] = []
  await tab.route(path, async (route) => {
    const payment = route.request().headers()['payment-signature']
    if (payment === undefined) return route.continue()
    sent.push(payment)
    if (sent.length > lost) return route.continue()
    // The service answers, and only then the connection ends.
    await route.fetch()
    return route.abort('connectionreset')
  })
  return sent
}
