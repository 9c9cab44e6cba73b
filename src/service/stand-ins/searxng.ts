import { json, type StandInRequest, type StandInResponse } from './stand-in.ts'

/** The same for every question: reports of the sandbox, one of them twice, and a page that leads where nobody may go. */
const RESULTS = [
  { url: 'https://news.example.com/charts/japan', title: 'Nine Lanterns Deep leads the charts in Japan' },
  { url: 'https://news.example.com/charts/japan?utm_source=sandbox#top', title: 'Nine Lanterns Deep leads' },
  { url: 'https://example.com/inside', title: 'Charts from the inside' },
  { url: 'https://shop.example.net/weekly', title: 'What we sold this week' },
  { url: 'https://www.example.org/notes', title: 'Notes on last week’s games' },
].map((result) => ({ ...result, content: '', engine: 'sandbox', score: 1 }))

/** Answers as SearXNG does, with 403 to a form that its settings do not allow. */
export function answerSearxng({ path, query }: StandInRequest): StandInResponse | undefined {
  if (path !== '/search') return undefined
  if (query.get('format') !== 'json') return { status: 403, headers: {}, body: 'Forbidden' }
  return json({ query: query.get('q') ?? '', number_of_results: 0, results: RESULTS, suggestions: [] })
}
