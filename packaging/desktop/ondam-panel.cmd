@rem Windows: put a shortcut to this file into the folder that "shell:startup" opens (Win+R, shell:startup).
@start "" /b ondam panel
