import type { StandInResponse } from '../stand-in.ts'

/** As an agency other than the two large ones describes a work: CSL-JSON with numbers and dates as texts. */
const REPORT = {
  type: 'report',
  DOI: '10.1409/wexmire.7',
  title: 'Una relazione sulle lampade',
  author: [{ given: 'Ada', family: 'Quill' }, { literal: 'Ufficio delle Lampade' }],
  publisher: 'Comune di Wexmire',
  volume: 7,
  issued: { 'date-parts': [['2011', '3']] },
  language: 'it',
  URL: 'https://agency.example.net/7',
}
const CSL = { 'content-type': 'application/vnd.citationstyles.csl+json; charset=utf-8' }
const HTML = { 'content-type': 'text/html; charset=utf-8' }

/** `doi.org` and one agency behind it. */
export function answerDois(host: string, path: string): StandInResponse {
  const doi = decodeURIComponent(path.slice(1)).toLowerCase()
  if (!doi.startsWith('10.1409/')) return { status: 404, headers: HTML, body: 'DOI Not Found' }
  if (host.startsWith('doi.')) {
    const there = doi.endsWith('/inside') ? 'http://169.254.169.254/' : `https://agency.example.net/${doi}`
    return { status: 302, headers: { location: there }, body: '' }
  }
  switch (doi) {
    case '10.1409/wexmire.7':
      return { status: 200, headers: CSL, body: JSON.stringify(REPORT) }
    case '10.1409/page':
      return { status: 200, headers: HTML, body: '<h1>A page for people</h1>' }
    case '10.1409/other':
      return { status: 200, headers: CSL, body: '{"DOI":"10.1409/other","title":{"it":"Altro"}}' }
    case '10.1409/broken':
      return { status: 503, headers: HTML, body: 'Sorry' }
    case '10.1409/limited':
      return { status: 429, headers: HTML, body: 'Later' }
    default:
      return { status: 406, headers: HTML, body: '' }
  }
}
