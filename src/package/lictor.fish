# fish completion for lictor: the program says itself what may come next (lictor __complete WORD...).

function __lictor_complete
    set -l words (commandline -opc) (commandline -ct)
    set -l found ($words[1] __complete $words[2..-1] 2>/dev/null)
    # The value of "--option=value" is completed behind its "=".
    set -l option (string match -r '^--[^=]+=' -- $words[-1])
    set -l value (string replace -- "$option" '' $words[-1])
    switch "$found"
        case ':file'
            printf "$option%s\n" (__fish_complete_path $value)
        case ':folder'
            printf "$option%s\n" (__fish_complete_directories $value)
        case '*'
            printf '%s\n' $found
    end
end

complete -c lictor -f -a '(__lictor_complete)'
