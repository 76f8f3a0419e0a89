/** The entry of the page. */
import { QueryClientProvider } from '@tanstack/react-query'
import { StrictMode } from 'react'
import { createRoot } from 'react-dom/client'
import { queryClient } from '../api/queries.ts'
import { ErrorBoundary } from '../ui/error-boundary.tsx'
import { App } from './app.tsx'
import './theme.css'

const root = document.getElementById('root')
if (root === null) throw new Error('the page has no root element')
createRoot(root, {
  // A boundary has shown the failure to the person; the stack is for a developer.
  // biome-ignore lint/suspicious/noConsole: the console of the browser is the only log of the page.
  onCaughtError: (error, { componentStack }) => console.warn(error, componentStack),
}).render(
  <StrictMode>
    <QueryClientProvider client={queryClient}>
      <ErrorBoundary what="The page">
        <App />
      </ErrorBoundary>
    </QueryClientProvider>
  </StrictMode>,
)
